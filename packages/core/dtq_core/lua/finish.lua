--[[ finish: RUNNING → SUCCEEDED, RETRYING, DEAD_LETTERED, FAILED or CANCELLED
KEYS[1] prefix
ARGV[1] events cap; then 7 a task: id, lease, outcome (succeeded, retry, failed, cancelled), body (JSON: the result, or the
        error), reason (one line), delay ms (retry), result TTL ms
Answers {code, status} for each: OK; AGAIN (this lease has finished already); LOST; UNKNOWN; CORRUPT.
The writes come in the order of the contract; XACK and XDEL are the last.
]]
-- @include drain codes terminal entry due
local STRIDE = 7
guard(RETRY_SCHEDULE, 'zset')

local function schedule_retry(task, reason, delay)
  local due = NOW + delay
  move(task, 'RETRYING', {'due_ms', due, 'error', reason, 'postponed_ms', 0})
  publish_event('TASK_RETRY_SCHEDULED', task.id, task.queue, task.attempt, reason)
  schedule(RETRY_SCHEDULE, due, task.id)
  if task.expires_ms then redis.call('ZADD', EXPIRY, task.expires_ms, task.id) end
end

local function finish(id, lease, outcome, body, reason, delay, result_ttl)
  local task, problem = load_task(id)
  if problem == 'missing' then return {UNKNOWN, ''} end
  if not task then return {CORRUPT, ''} end
  if task.lease ~= lease then return {LOST, task.status} end
  if task.status ~= 'RUNNING' then return {AGAIN, task.status} end

  -- Asked to cancel, a task that did not succeed is not tried again.
  if task.cancel_requested and outcome ~= 'succeeded' then outcome = 'cancelled' end
  if outcome ~= 'succeeded' and not record_attempt_end(task, '"outcome":"' .. outcome .. '","error":' .. body .. '}') then
    return {CORRUPT, task.status}
  end
  if outcome == 'succeeded' then
    -- A success is the last attempt there is. Its end is in the record, in one write with the status.
    end_task(task, 'SUCCEEDED', nil, body, result_ttl)
  elseif outcome == 'retry' then
    schedule_retry(task, reason, delay)
  elseif outcome == 'cancelled' then
    end_task(task, 'CANCELLED', task.cancel_reason or reason)
  else
    fail_task(task, reason)
  end
  ack(stream_key(task.queue, task.band), task.entry_id)
  return {OK, task.status}
end

local answers = {}
for i = 2, #ARGV, STRIDE do answers[#answers + 1] = finish(unpack(ARGV, i, i + STRIDE - 1)) end
flush_stats()
flush_due()
flush_acks()
return answers
