--[[ recount: no move; sets counters of a queue to what was counted, if none of them has changed meanwhile
KEYS[1] prefix
ARGV[1] events cap, [2…7] the operation (lib/audit.lua), [8] queue; then 3 a counter: name, value read before the tasks
were counted ('': none), right value
Answers 1 if it did, 0 if a counter has changed.
]]
-- @include drain audit stats
local key = stats_key(ARGV[8])
guard(key, 'hash')
local STRIDE, BEGIN = 3, 9
local names = {}
for i = BEGIN, #ARGV, STRIDE do names[#names + 1] = ARGV[i] end
local found = redis.call('HMGET', key, unpack(names))
for i = 1, #names do
  if (found[i] or '') ~= ARGV[BEGIN + (i - 1) * STRIDE + 1] then return 0 end
end
local changed = 0
for i = BEGIN, #ARGV, STRIDE do
  if (tonumber(ARGV[i + 1]) or 0) ~= tonumber(ARGV[i + 2]) then
    redis.call('HSET', key, ARGV[i], ARGV[i + 2])
    changed = changed + 1
  end
end
audit(#names, changed)
return 1
