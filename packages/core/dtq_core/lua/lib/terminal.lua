-- @include move event attempt now
-- → a terminal status: hash, then whatever the outcome stores, event, idempotency record, retention, waiters.
guard(EXPIRY, 'zset')
guard(DLQ, 'stream')
local DEFAULT_RETENTION_MS = 86400000
local EVENT_OF = {SUCCEEDED = 'TASK_SUCCEEDED', FAILED = 'TASK_FAILED', DEAD_LETTERED = 'TASK_DEAD_LETTERED',
  CANCELLED = 'TASK_CANCELLED', EXPIRED = 'TASK_EXPIRED'}

-- An idempotency record that is another task's, or not a hash, is left alone.
local function end_idempotency(task, state)
  if not task.idem_key then return end
  local key = idem_key(task.idem_key)
  local values = redis.pcall('HMGET', key, 'task', 'ttl_ms')
  if failed_with(values, 'WRONGTYPE') or values[1] ~= task.id then return end
  redis.call('HSET', key, 'state', state)
  redis.call('PEXPIRE', key, values[2] and is_number(values[2]) and values[2] or DEFAULT_RETENTION_MS)
end

-- Whether attempts may be listed: a success at the first attempt has none.
local function has_list(task) return task.status ~= 'SUCCEEDED' or task.requeues or tonumber(task.attempt) > 1 end

-- A dead-lettered task stays until it is requeued or purged.
local function start_retention(task, at_least_ms)
  if task.status == 'DEAD_LETTERED' then return end
  local retention = math.max(task.retention_ms or DEFAULT_RETENTION_MS, at_least_ms or 0)
  redis.call('PEXPIRE', task_key(task.id), retention)
  if has_list(task) then redis.call('PEXPIRE', attempts_key(task.id), retention) end
end

local function post_letter(task, reason)
  local letter = redis.call('XADD', DLQ, '*', 'id', task.id, 'queue', task.queue, 'attempt', task.attempt, 'reason', reason)
  redis.call('HSET', task_key(task.id), 'letter_id', letter)
end

-- `result` and `result_ttl` where the outcome has one.
local function end_task(task, status, reason, result, result_ttl)
  local fields = {'finished_ms', NOW}
  if reason then
    fields[3], fields[4] = 'error', reason
  end
  move(task, status, fields)
  if result then
    redis.call('SET', result_key(task.id), result, 'PX', result_ttl)
  elseif status == 'DEAD_LETTERED' then
    post_letter(task, reason)
  end
  publish_event(EVENT_OF[status], task.id, task.queue, task.attempt, reason)
  end_idempotency(task, status == 'SUCCEEDED' and 'completed' or 'failed')
  if task.expires_ms then redis.call('ZREM', EXPIRY, task.id) end
  start_retention(task, result_ttl)
  if task.watched then redis.pcall('PUBLISH', done_channel(task.id), status) end -- the right to it may be missing
end

-- A permanent failure: the dead-letter stream, or FAILED where the task has it off.
local function fail_task(task, reason)
  end_task(task, task.dead_letter == '0' and 'FAILED' or 'DEAD_LETTERED', reason)
end
