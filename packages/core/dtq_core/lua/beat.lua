--[[ beat: a worker says that it lives, and what it is
KEYS[1] prefix
ARGV[1] worker, [2] ms after which it counts as dead, [3] visibility timeout ms; then field, value, … of its description
Answers {cancels asked for so far, longest visibility timeout ms of all live workers}.
]]
-- @include drain guard now
guard(WORKERS, 'zset')
guard(worker_key(ARGV[1]), 'hash')
local key = worker_key(ARGV[1])
local found = redis.call('HMGET', key, 'cancels', 'seen_ms')
local cancels = tonumber(string.match(found[1] or '', '^%d+$') or 0)
local seen = tonumber(string.match(found[2] or '', '^%d+$') or NOW)
redis.call('ZADD', WORKERS, NOW, ARGV[1])
-- A late heartbeat: Redis or this worker stood still. Reclaim leaves others the time to renew.
if NOW - seen > ARGV[3] / 2 then redis.call('HSET', key, 'late_ms', NOW) end
redis.call('HSET', key, 'seen_ms', NOW, 'visibility_ms', ARGV[3], 'cancels', cancels, unpack(ARGV, 4))
redis.call('PEXPIRE', key, ARGV[2])
local longest = tonumber(ARGV[3])
for _, other in ipairs(redis.call('ZRANGE', WORKERS, 0, -1)) do
  local visibility = redis.pcall('HGET', worker_key(other), 'visibility_ms')
  if type(visibility) == 'string' then longest = math.max(longest, tonumber(visibility) or 0) end
end
return {cancels, longest}
