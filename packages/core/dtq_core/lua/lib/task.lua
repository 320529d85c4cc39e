-- @include guard
-- Reads a record: a table of its fields, those that are absent being nil.
-- HGETALL, because in the compact form of a small hash each field that is asked for by name is searched from the start.
local NUMBERS = {'attempt', 'max_attempts', 'lease', 'expires_ms', 'retention_ms', 'crashes', 'releases', 'requeues', 'alone',
  'started_ms', 'submitted_ms', 'queued_ms', 'postponed_ms'}
local MAX_DIGITS = 15 -- what a number in Lua holds exactly
local WAITING = {SCHEDULED = true, QUEUED = true, RETRYING = true}
local TERMINAL = {SUCCEEDED = true, FAILED = true, DEAD_LETTERED = true, CANCELLED = true, EXPIRED = true}

local function is_number(value) return #value <= MAX_DIGITS and string.find(value, '^%d+$') end
local function is_name(value) return value and string.find(value, '^[%w_.%-]+$') end

local MAX_ENTRY_DIGITS = 19 -- what each half of an entry's id holds, whatever its digits are
local function is_entry(value)
  local ms, number = string.match(value or '', '^(%d+)%-(%d+)$')
  return ms and #ms <= MAX_ENTRY_DIGITS and #number <= MAX_ENTRY_DIGITS
end

-- Whether its status is one there is, and the record holds what a script needs in that status.
local function sound_status(task)
  if task.status == 'RUNNING' then return is_entry(task.entry_id) and is_name(task.worker) and task.lease end
  if task.status == 'QUEUED' then return is_entry(task.entry_id) end
  return WAITING[task.status] or TERMINAL[task.status]
end

-- What Redis or a worker would refuse later is refused here, before anything is written.
local function sound_record(task)
  if not (task.status and is_name(task.queue) and BANDS[task.band or ''] and task.attempt) then return false end
  for i = 1, #NUMBERS do
    local value = task[NUMBERS[i]]
    if value and not is_number(value) then return false end
  end
  return sound_status(task)
end

-- Returns the record; or nil and the problem: 'missing', or 'corrupt', a record that is not ours.
local function load_record(id)
  local values = redis.pcall('HGETALL', task_key(id))
  if failed_with(values, 'WRONGTYPE') then return nil, 'corrupt' end
  if #values == 0 then return nil, 'missing' end
  local task = {}
  for i = 1, #values, 2 do task[values[i]] = values[i + 1] end
  task.id = id
  if not sound_record(task) then return nil, 'corrupt' end
  return task
end

-- The same for a step that will also write to the task's queue. Its third problem is 'blocked': a sound record in a queue
-- with a key that is not ours.
local function in_sound_queue(task, problem)
  if task and not sound_queue(task.queue, task.band) then return nil, 'blocked' end
  return task, problem
end
local function load_task(id) return in_sound_queue(load_record(id)) end
