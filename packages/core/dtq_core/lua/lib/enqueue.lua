-- @include move entry wake now
-- → QUEUED: adds an entry for the task's attempt to its band and wakes a worker.
local function enqueue(task, fields)
  local entry = redis.call('XADD', stream_key(task.queue, task.band), '*', 'id', task.id, 'attempt', task.attempt)
  fields[#fields + 1] = 'entry_id'
  fields[#fields + 1] = entry
  fields[#fields + 1] = 'queued_ms'
  fields[#fields + 1] = NOW
  move(task, 'QUEUED', fields)
  wake(task.queue, 'n')
end
