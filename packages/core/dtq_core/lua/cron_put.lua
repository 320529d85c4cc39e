--[[ cron_put: no move; stores a recurring schedule
KEYS[1] prefix
ARGV[1] events cap, [2…7] the operation (lib/audit.lua; its id is '' for a worker, which is not audited), [8] name,
[9] definition, [10] next slot ms, [11] 1 if its times are to be those given although it was there
Answers OK, or AGAIN where it was stored just so. A schedule that is there keeps its next slot, unless its times changed;
a paused one stays paused.
]]
-- @include drain codes audit cron due
local name, definition, next_slot, anew = ARGV[8], ARGV[9], tonumber(ARGV[10]), ARGV[11] == '1'
if redis.call('HGET', CRON, name) == definition then return AGAIN end
redis.call('HSET', CRON, name, definition)
local paused = redis.call('HEXISTS', CRON_STATE, paused_field(name)) == 1
if not paused and (anew or not redis.call('ZSCORE', CRON_SCHEDULE, name)) then schedule(CRON_SCHEDULE, next_slot, name) end
if OPERATION ~= '' then audit(1, 1) end
flush_due()
return OK
