-- @include task stats
-- The only code that writes a status. `fields` is a flat list of the other fields to set in the same HSET.
local function move(task, status, fields)
  if task.status and not TERMINAL[task.status] then count(task.queue, task.status, -1) end
  count(task.queue, status, 1)
  count(task.queue, 'moves', 1)
  task.status = status
  redis.call('HSET', task_key(task.id), 'status', status, unpack(fields))
end
