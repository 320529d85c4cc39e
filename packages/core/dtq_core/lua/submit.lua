--[[ submit: – → QUEUED / SCHEDULED
KEYS[1] prefix
ARGV[1] events cap; then 13 a task (lib/submission.lua)
Answers {code, task id, status} for each: OK; AGAIN (this id is there: a repeated call); DUPLICATE or CONFLICT with the
task that owns the idempotency key; CORRUPT (a key of the task, its queue or its idempotency record is not ours).
]]
-- @include codes submission
local answers = {}
for i = 2, #ARGV, SUBMISSION do answers[#answers + 1] = submit(unpack(ARGV, i, i + SUBMISSION - 1)) end
flush_stats()
flush_wakes()
flush_due()
return answers
