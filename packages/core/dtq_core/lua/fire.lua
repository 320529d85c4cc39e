--[[ fire: – → QUEUED, the tasks of a recurring schedule
KEYS[1] prefix
ARGV[1] events cap, [2…7] the operation (lib/audit.lua; its id is '' for the scheduler, which is not audited), [8] name,
[9] slot ms that is due ('': fired by hand), [10] newest slot ms that this deals with, [11] next slot ms ('': none),
[12] 1 if nothing is submitted while its last task has not ended; then 13 a task (lib/submission.lua)
Answers a code for each task: OK, DUPLICATE or CONFLICT (its key is taken), CORRUPT; AGAIN instead of all where the slot
is not the next one any more: another scheduler fired it. Tasks, last slot and next slot change in one step.
]]
-- @include codes audit cron peek submission
local name, slot, newest, next_slot, alone = ARGV[8], ARGV[9], ARGV[10], ARGV[11], ARGV[12] == '1'
local BEGIN = 13
if slot ~= '' and redis.call('ZSCORE', CRON_SCHEDULE, name) ~= slot then return {AGAIN} end

local function still_runs()
  local last = redis.call('HGET', CRON_STATE, task_field(name))
  local task = last and peek_record(last)
  return task and not TERMINAL[task.status]
end

local answers = {}
if alone and BEGIN <= #ARGV and still_runs() then
  publish_event('CRON_SKIPPED', '', name, '', 'the task of an earlier slot has not ended')
else
  for i = BEGIN, #ARGV, SUBMISSION do
    local answer = submit(unpack(ARGV, i, i + SUBMISSION - 1))
    answers[#answers + 1] = answer[1]
    if answer[1] == OK then redis.call('HSET', CRON_STATE, task_field(name), answer[2]) end
  end
end
if slot ~= '' then
  redis.call('HSET', CRON_STATE, slot_field(name), newest)
  if next_slot == '' then
    redis.call('ZREM', CRON_SCHEDULE, name)
  else
    redis.call('ZADD', CRON_SCHEDULE, next_slot, name)
  end
end
if OPERATION ~= '' then audit(1, #answers) end
flush_stats()
flush_wakes()
return answers
