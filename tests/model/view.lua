-- Looks at one partition of the model. KEYS[1] prefix, ARGV[1] idempotency key, ARGV[2…] task ids.
-- Answers all keys packed, to restore them from, and what they hold packed, to look at.
-- Wake-up tokens, events and the audit log decide nothing: they are dropped.
local P = KEYS[1]
local stream = P .. ':stream:q:normal'
redis.call('DEL', P .. ':events', P .. ':wake:q', P .. ':audit', P .. ':audit:head')

local names = {stream, P .. ':retry:schedule', P .. ':delay:schedule', P .. ':expiry', P .. ':dlq',
  P .. ':queues', P .. ':stats:q', P .. ':idem:' .. ARGV[1]}
local records = {}
for i = 2, #ARGV do
  local task, attempts, result = P .. ':task:' .. ARGV[i], P .. ':attempts:' .. ARGV[i], P .. ':result:' .. ARGV[i]
  names[#names + 1], names[#names + 2], names[#names + 3] = task, attempts, result
  records[i - 1] = {redis.call('HGETALL', task), redis.call('LLEN', attempts), redis.call('EXISTS', result),
    redis.call('PTTL', task), redis.call('PTTL', attempts)}
end

local saved = {}
for i = 1, #names do
  local dump = redis.call('DUMP', names[i])
  if dump then saved[#saved + 1] = {names[i], dump, math.max(0, redis.call('PTTL', names[i]))} end
end

local function scores(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
local groups = redis.pcall('XINFO', 'GROUPS', stream)
local delivered, pending = '', {}
if not groups.err and #groups > 0 then
  delivered = groups[1][8]
  pending = redis.call('XPENDING', stream, 'workers', '-', '+', 100)
end
local view = {
  records, redis.call('XRANGE', stream, '-', '+'), delivered, pending,
  scores(names[2]), scores(names[3]), scores(names[4]), redis.call('XRANGE', P .. ':dlq', '-', '+'),
  redis.call('HGETALL', names[8]), redis.call('PTTL', names[8]), redis.call('HGETALL', P .. ':stats:q'),
  redis.call('DBSIZE') - #saved,
}
return {cmsgpack.pack(saved), cmsgpack.pack(view)}
