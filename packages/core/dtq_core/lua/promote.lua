--[[ promote: SCHEDULED, RETRYING → QUEUED; → EXPIRED when its TTL has ended
KEYS[1] prefix
ARGV[1] events cap, [2] schedule (retry or delay), [3] how many at most
Answers {promoted, bad, looked at, ms until the next one is due, or -1}.
One step: status, stream entry and schedule change together. A member whose task is no longer in the status that this
schedule serves is dropped from it; one without a sound record is moved aside and reported.
]]
-- @include drain waiting enqueue
local SERVES = {retry = 'RETRYING', delay = 'SCHEDULED'}
local SCHEDULE = ARGV[2] == 'retry' and RETRY_SCHEDULE or DELAY_SCHEDULE
local promoted, bad = 0, 0

local function set_aside(id)
  redis.call('XADD', DLQ, '*', 'id', id, 'queue', '', 'attempt', '', 'reason', 'corrupt record')
  publish_event('TASK_CORRUPT', id, '', '', 'corrupt record')
  redis.call('ZREM', SCHEDULE, id)
end

local function promote_task(task)
  local fields = {}
  if task.status == 'RETRYING' then
    task.attempt = task.attempt + 1
    fields = {'attempt', task.attempt}
  end
  enqueue(task, fields)
  redis.call('ZREM', SCHEDULE, task.id)
  publish_event('TASK_QUEUED', task.id, task.queue, task.attempt)
  promoted = promoted + 1
end

local function promote(id)
  local task, problem = load_task(id)
  if problem == 'corrupt' then
    set_aside(id)
    bad = bad + 1
  elseif problem == 'blocked' then
    put_off(SCHEDULE, id)
    bad = bad + 1
  elseif not task or task.status ~= SERVES[ARGV[2]] then
    redis.call('ZREM', SCHEDULE, id)
  elseif task.expires_ms and tonumber(task.expires_ms) <= NOW then
    end_waiting(task, 'EXPIRED', 'not started before its TTL ended')
  else
    promote_task(task)
  end
end

local ids = redis.call('ZRANGEBYSCORE', SCHEDULE, '-inf', NOW, 'LIMIT', 0, ARGV[3])
for i = 1, #ids do promote(ids[i]) end
flush_stats()
flush_wakes()
local first = redis.call('ZRANGE', SCHEDULE, 0, 0, 'WITHSCORES')
return {promoted, bad, #ids, first[2] and math.max(0, first[2] - NOW) or -1}
