--[[ cancel: SCHEDULED, QUEUED, RETRYING → CANCELLED; RUNNING: asks its worker to stop
KEYS[1] prefix
ARGV[1] events cap, [2…7] the operation (lib/audit.lua; its id is '' for a client, which is not audited), [8] reason; then
the task ids
Answers {code, status} for each: OK (cancelled now); AGAIN (cancelled before); REQUESTED; ENDED (otherwise); UNKNOWN;
CORRUPT. An unknown id leaves no mark, and what changes nothing is not audited, so a second try is not either.
]]
-- @include drain codes audit waiting
local WHY, changed = ARGV[8], 0

local function request_cancel(task)
  if task.cancel_requested then return end
  changed = changed + 1
  redis.call('HSET', task_key(task.id), 'cancel_requested', NOW, 'cancel_reason', WHY)
  publish_event('TASK_CANCEL_REQUESTED', task.id, task.queue, task.attempt, WHY)
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
    end_waiting(task, 'CANCELLED', WHY)
    changed = changed + 1
    return {OK, task.status}
  end
  request_cancel(task)
  return {REQUESTED, task.status}
end

local answers = {}
for i = 9, #ARGV do answers[#answers + 1] = cancel(ARGV[i]) end
if OPERATION ~= '' and changed > 0 then audit(changed, changed) end
flush_stats()
flush_acks()
return answers
