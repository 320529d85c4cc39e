--[[ probe: no move; writes a key that nobody reads, to tell whether tasks could be accepted
KEYS[1] prefix
ARGV none
Answers OK.
]]
-- @include codes keys
redis.call('SET', MARK, '1', 'PX', 1000)
return OK
