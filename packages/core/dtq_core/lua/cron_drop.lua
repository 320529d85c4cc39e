--[[ cron_drop: no move; removes a recurring schedule; tasks that it made stay
KEYS[1] prefix
ARGV[1] events cap, [2…7] the operation (lib/audit.lua; its id is '' for a worker, which is not audited), [8] name,
[9] definition that it must have ('': any)
Answers OK; UNKNOWN; CONFLICT (it has another definition by now).
]]
-- @include drain codes audit cron
local name = ARGV[8]
local definition = redis.call('HGET', CRON, name)
if not definition then return UNKNOWN end
if ARGV[9] ~= '' and ARGV[9] ~= definition then return CONFLICT end
redis.call('HDEL', CRON, name)
redis.call('ZREM', CRON_SCHEDULE, name)
redis.call('HDEL', CRON_STATE, slot_field(name), task_field(name), paused_field(name))
if OPERATION ~= '' then audit(1, 1) end
return OK
