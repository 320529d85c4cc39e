-- @include task
-- Reads a record without what users put there, which may be large; otherwise as load_record.
local FIELDS = {'status', 'queue', 'band', 'entry_id', 'worker', 'watched', 'idem_key', 'dead_letter', 'due_ms',
  'letter_id', 'requeued_by', unpack(NUMBERS)}

local function peek_record(id)
  local values = redis.pcall('HMGET', task_key(id), unpack(FIELDS))
  if failed_with(values, 'WRONGTYPE') then return nil, 'corrupt' end
  local task = {}
  for i = 1, #FIELDS do task[FIELDS[i]] = values[i] or nil end
  if next(task) == nil and redis.call('EXISTS', task_key(id)) == 0 then return nil, 'missing' end
  task.id = id
  if not sound_record(task) then return nil, 'corrupt' end
  return task
end

-- The same for a step that will also write to the task's queue, as load_task.
local function peek_task(id) return in_sound_queue(peek_record(id)) end
