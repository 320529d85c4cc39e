--[[ verify: no move; looks whether things agree, at one moment, and mends what does not
KEYS[1] prefix
ARGV[1] events cap, [2…7] the operation (lib/audit.lua), [8] what may be mended: nothing, lost or all; then 3 a thing:
what it is (task, entry, member, letter, attempts, result, idempotency, queue), and two words that name it
Answers {findings, tasks}: a finding as {kind, subject, 1 if it was mended}; each sound task as {id, status, queue}. Of what is mended for an operator ('all') the audit log is told.
]]
-- @include drain check_places
guard(DELAY_SCHEDULE, 'zset')
guard(RETRY_SCHEDULE, 'zset')
guard(QUEUES, 'hash')
local STRIDE, BEGIN = 3, 9
local CHECKS = {task = check_task, entry = check_stream_entry, member = check_member, letter = check_letter,
  attempts = check_attempts, result = check_result, idempotency = check_idempotency, queue = check_queue}

for i = BEGIN, #ARGV, STRIDE do CHECKS[ARGV[i]](ARGV[i + 1], ARGV[i + 2]) end
if MENDS == 'all' and mended > 0 then audit(#findings, mended) end
flush_stats()
flush_acks()
flush_wakes()
return {findings, checked}
