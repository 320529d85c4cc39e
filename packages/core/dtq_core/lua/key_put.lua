--[[ key_put: no move; stores an API key of the HTTP API, or stores it as revoked
KEYS[1] prefix
ARGV[1] events cap, [2…7] the operation (lib/audit.lua), [8] name, [9] what is stored under it ('': nothing), [10] what is
to be stored
Answers OK; AGAIN (that is stored: a repeated call); CONFLICT (something else is stored by now).
]]
-- @include codes audit
guard(API_KEYS, 'hash')
local name, before, text = ARGV[8], ARGV[9], ARGV[10]
local stored = redis.call('HGET', API_KEYS, name) or ''
if stored == text then return AGAIN end
if stored ~= before then return CONFLICT end
redis.call('HSET', API_KEYS, name, text)
audit(1, 1)
return OK
