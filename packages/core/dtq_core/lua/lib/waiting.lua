-- @include terminal entry
-- Ending a task that waits: it leaves its schedule, or its entry leaves the stream.
guard(DELAY_SCHEDULE, 'zset')
guard(RETRY_SCHEDULE, 'zset')
local function end_waiting(task, status, reason)
  local was = task.status
  end_task(task, status, reason)
  if was == 'SCHEDULED' then
    redis.call('ZREM', DELAY_SCHEDULE, task.id)
  elseif was == 'RETRYING' then
    redis.call('ZREM', RETRY_SCHEDULE, task.id)
  else
    ack(stream_key(task.queue, task.band), task.entry_id)
  end
end

-- A task whose queue holds a key that is not ours waits until an operator has mended it, and stops no other.
local BLOCKED_MS = 60000
local function put_off(schedule, id)
  redis.call('ZADD', schedule, NOW + BLOCKED_MS, id)
  publish_event('TASK_CORRUPT', id, '', '', 'a key of its queue is not ours')
end
