-- @include guard
-- Reads a record: a table of its fields, those that are absent being nil.
-- HGETALL, because in the compact form of a small hash each field that is asked for by name is searched from the start.
local NUMBERS = {'attempt', 'max_attempts', 'lease', 'expires_ms', 'retention_ms', 'crashes', 'releases', 'started_ms',
  'submitted_ms', 'postponed_ms'}
local MAX_DIGITS = 15 -- what a number in Lua holds exactly
local WAITING = {SCHEDULED = true, QUEUED = true, RETRYING = true}
local TERMINAL = {SUCCEEDED = true, FAILED = true, DEAD_LETTERED = true, CANCELLED = true, EXPIRED = true}

local function sound_record(task)
  if not (task.status and task.queue and task.band and task.attempt) then return false end
  for i = 1, #NUMBERS do
    local value = task[NUMBERS[i]]
    if value and (#value > MAX_DIGITS or not string.find(value, '^%d+$')) then return false end
  end
  return true
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
local function load_task(id)
  local task, problem = load_record(id)
  if task and not sound_queue(task.queue, task.band) then return nil, 'blocked' end
  return task, problem
end
