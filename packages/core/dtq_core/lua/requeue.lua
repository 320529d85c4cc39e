--[[ requeue: DEAD_LETTERED, FAILED → QUEUED
KEYS[1] prefix
ARGV[1] events cap, [2…7] the operation (lib/audit.lua); then 2 a task: its dead letter as it was seen ('': any), id
Answers {code, status} for each: OK; AGAIN (this very operation did it before, even if it has failed since); ENDED (it did
not fail, or has failed anew since its letter was seen); UNKNOWN; CORRUPT. The attempt is 1 again, under a new lease; the ended attempts stay listed, and crashes stay
counted. A TTL was for the first wait and is gone. An idempotency key that still is the task's is taken again.
]]
-- @include drain codes audit peek enqueue terminal
local FAILURES = {DEAD_LETTERED = true, FAILED = true}
local PASSED = {'finished_ms', 'error', 'due_ms', 'expires_ms', 'letter_id', 'postponed_ms', 'progress'}

local function take_key_again(task)
  if not task.idem_key then return end
  local key = idem_key(task.idem_key)
  local owner = redis.pcall('HGET', key, 'task')
  if failed_with(owner, 'WRONGTYPE') or owner ~= task.id then return end
  redis.call('HSET', key, 'state', 'processing')
  redis.call('PERSIST', key)
end

local function requeue(letter, id)
  local task, problem = peek_task(id)
  if problem == 'missing' then return {UNKNOWN, ''} end
  if not task then return {CORRUPT, ''} end
  if task.requeued_by == OPERATION then return {AGAIN, task.status} end
  if not FAILURES[task.status] or (letter ~= '' and letter ~= task.letter_id) then return {ENDED, task.status} end
  if is_entry(task.letter_id) then redis.call('XDEL', DLQ, task.letter_id) end
  task.attempt = 1
  enqueue(task, {'attempt', 1, 'lease', (task.lease or 0) + 1, 'requeues', (task.requeues or 0) + 1,
    'requeued_by', OPERATION, 'worker', ''})
  redis.call('HDEL', task_key(id), unpack(PASSED))
  redis.call('PERSIST', task_key(id))
  redis.call('PERSIST', attempts_key(id))
  publish_event('TASK_REQUEUED', id, task.queue, 1, REASON)
  take_key_again(task)
  return {OK, task.status}
end

local answers, changed = {}, 0
for i = 8, #ARGV, 2 do
  local answer = requeue(ARGV[i], ARGV[i + 1])
  answers[#answers + 1] = answer
  if answer[1] == OK then changed = changed + 1 end
end
if changed > 0 then audit(#answers, changed) end
flush_stats()
flush_wakes()
return answers
