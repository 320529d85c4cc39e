--[[ lead: takes, keeps or gives up the lease of the leading scheduler
KEYS[1] prefix
ARGV[1] who asks, [2] lease ms (0: give it up)
Answers {1 if the asker leads now, term, ms left of the lease}. Only the owner renews or gives up. The term is the Redis
time at which the lease was taken, so that a later leader always has a higher one.
]]
-- @include drain guard now
local KEY = P .. ':leader:scheduler'
guard(KEY, 'string')
local held = redis.call('GET', KEY)
local owner, term = string.match(held or '', '^(%S+) (%d+)$')
-- A lease without an end is not one of ours: it would block every scheduler for ever.
if owner and redis.call('PTTL', KEY) < 0 then owner = nil end
if owner and owner ~= ARGV[1] then return {0, tonumber(term), redis.call('PTTL', KEY)} end
if tonumber(ARGV[2]) == 0 then
  if owner then redis.call('DEL', KEY) end
  return {0, tonumber(term) or 0, 0}
end
if not owner then term = NOW end
redis.call('SET', KEY, ARGV[1] .. ' ' .. term, 'PX', ARGV[2])
return {1, tonumber(term), tonumber(ARGV[2])}
