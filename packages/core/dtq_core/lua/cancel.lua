--[[ cancel: SCHEDULED, QUEUED, RETRYING → CANCELLED; RUNNING: asks its worker to stop
KEYS[1] prefix
ARGV[1] events cap, [2] reason; then the task ids
Answers {code, status} for each: OK (cancelled now); AGAIN (cancelled before); REQUESTED; ENDED (otherwise); UNKNOWN;
CORRUPT. An unknown id leaves no mark.
]]
-- @include drain codes waiting
local function request_cancel(task)
  if task.cancel_requested then return end
  redis.call('HSET', task_key(task.id), 'cancel_requested', NOW, 'cancel_reason', ARGV[2])
  publish_event('TASK_CANCEL_REQUESTED', task.id, task.queue, task.attempt, ARGV[2])
  -- The worker looks at this counter with every heartbeat. A task of a dead worker is left to reclaim.
  if task.worker and redis.pcall('HEXISTS', worker_key(task.worker), 'cancels') == 1 then
    redis.pcall('HINCRBY', worker_key(task.worker), 'cancels', 1) -- no number: the next heartbeat mends it
  end
end

local function cancel(id)
  local task, problem = load_task(id)
  if problem == 'missing' then return {UNKNOWN, ''} end
  if not task then return {CORRUPT, ''} end
  if task.status == 'CANCELLED' then return {AGAIN, task.status} end
  if TERMINAL[task.status] then return {ENDED, task.status} end
  if WAITING[task.status] then
    end_waiting(task, 'CANCELLED', ARGV[2])
    return {OK, task.status}
  end
  request_cancel(task)
  return {REQUESTED, task.status}
end

local answers = {}
for i = 3, #ARGV do answers[#answers + 1] = cancel(ARGV[i]) end
flush_stats()
flush_acks()
return answers
