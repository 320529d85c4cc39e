--[[ cron_pause: no move; an operator pauses a recurring schedule, or resumes it
KEYS[1] prefix
ARGV[1] events cap, [2…7] the operation (lib/audit.lua), [8] name, [9] next slot ms to resume with; '': pause
Answers OK; AGAIN (it was so before); UNKNOWN. Slots that pass while it is paused are not made up.
]]
-- @include drain codes audit cron due
local name, next_slot = ARGV[8], ARGV[9]
if redis.call('HEXISTS', CRON, name) == 0 then return UNKNOWN end
local paused = redis.call('HEXISTS', CRON_STATE, paused_field(name)) == 1
if paused == (next_slot == '') then
  audit(1, 0)
  return AGAIN
end
if next_slot == '' then
  redis.call('HSET', CRON_STATE, paused_field(name), NOW)
  redis.call('ZREM', CRON_SCHEDULE, name)
else
  redis.call('HDEL', CRON_STATE, paused_field(name))
  schedule(CRON_SCHEDULE, tonumber(next_slot), name)
end
audit(1, 1)
flush_due()
return OK
