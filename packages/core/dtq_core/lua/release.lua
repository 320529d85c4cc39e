--[[ release: RUNNING → QUEUED; → SCHEDULED when it is to wait; → CANCELLED when that was asked for
KEYS[1] prefix
ARGV[1] events cap; then 4 a task: id, lease, delay ms, reason
Answers {code, status} for each: OK, LOST, UNKNOWN, CORRUPT. Spends no attempt, and ends the lease: a second release of
the same lease is LOST. Without delay the entry stays pending, overdue, so that the next reclaim takes it.
]]
-- @include drain codes terminal entry wake due
local STRIDE = 4
guard(DELAY_SCHEDULE, 'zset')

local overdue = {}
local function keep_overdue(task)
  local stream = stream_key(task.queue, task.band)
  overdue[stream] = overdue[stream] or {}
  table.insert(overdue[stream], task.entry_id)
  wake(task.queue, 'o')
end

local function release(id, lease, delay, reason)
  local task, problem = load_task(id)
  if problem == 'missing' then return {UNKNOWN, ''} end
  if not task then return {CORRUPT, ''} end
  if task.lease ~= lease or task.status ~= 'RUNNING' then return {LOST, task.status} end

  local stream = stream_key(task.queue, task.band)
  if task.cancel_requested then
    end_task(task, 'CANCELLED', task.cancel_reason or reason)
    ack(stream, task.entry_id)
    return {OK, task.status}
  end
  local fields = {'lease', lease + 1, 'releases', (task.releases or 0) + 1, 'worker', ''}
  if task.expires_ms then redis.call('ZADD', EXPIRY, task.expires_ms, id) end
  if tonumber(delay) > 0 then
    if (tonumber(task.postponed_ms) or 0) == 0 then redis.call('HSET', task_key(id), 'postponed_ms', NOW) end
    fields[7], fields[8] = 'due_ms', NOW + delay
    move(task, 'SCHEDULED', fields)
    schedule(DELAY_SCHEDULE, NOW + delay, id)
    ack(stream, task.entry_id)
  else
    fields[7], fields[8] = 'postponed_ms', 0 -- a worker that knows the task had it
    move(task, 'QUEUED', fields)
    keep_overdue(task)
  end
  count(task.queue, 'released', 1)
  publish_event('TASK_RELEASED', id, task.queue, task.attempt, reason)
  return {OK, task.status}
end

local answers = {}
for i = 2, #ARGV, STRIDE do answers[#answers + 1] = release(unpack(ARGV, i, i + STRIDE - 1)) end
for stream, ids in pairs(overdue) do make_overdue(stream, ids) end
flush_stats()
flush_due()
flush_acks()
flush_wakes()
return answers
