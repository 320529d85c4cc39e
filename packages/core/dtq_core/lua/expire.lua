--[[ expire: SCHEDULED, QUEUED, RETRYING → EXPIRED
KEYS[1] prefix
ARGV[1] events cap, [2] how many at most
Answers {expired, looked at, ms until the next one is due, or -1}.
]]
-- @include drain waiting
local expired = 0
local function expire(id)
  local task, problem = load_task(id)
  if problem == 'blocked' then
    put_off(EXPIRY, id)
  elseif task and WAITING[task.status] and task.expires_ms then
    end_waiting(task, 'EXPIRED', 'not started before its TTL ended')
    expired = expired + 1
  else
    redis.call('ZREM', EXPIRY, id) -- started, ended or gone: no longer waiting
  end
end

local ids = redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', NOW, 'LIMIT', 0, ARGV[2])
for i = 1, #ids do expire(ids[i]) end
flush_stats()
flush_acks()
local first = redis.call('ZRANGE', EXPIRY, 0, 0, 'WITHSCORES')
return {expired, #ids, first[2] and math.max(0, first[2] - NOW) or -1}
