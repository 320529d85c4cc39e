--[[ purge: SCHEDULED, QUEUED, RETRYING → CANCELLED, by an operator
KEYS[1] prefix
ARGV[1] events cap, [2…7] the operation (lib/audit.lua), [8] queue, [9] band ('': all); then the task ids
Answers a code for each: OK; REQUESTED (it runs, and is left alone); ENDED; CONFLICT (of another queue or band); UNKNOWN;
CORRUPT.
]]
-- @include drain codes audit peek waiting
local QUEUE, BAND = ARGV[8], ARGV[9]

local function purge(id)
  local task, problem = peek_task(id)
  if problem == 'missing' then return UNKNOWN end
  if not task then return CORRUPT end
  if task.queue ~= QUEUE or (BAND ~= '' and task.band ~= BAND) then return CONFLICT end
  if TERMINAL[task.status] then return ENDED end
  if not WAITING[task.status] then return REQUESTED end
  end_waiting(task, 'CANCELLED', REASON == '' and 'purged' or 'purged: ' .. REASON)
  return OK
end

local answers, changed = {}, 0
for i = 10, #ARGV do
  local answer = purge(ARGV[i])
  answers[#answers + 1] = answer
  if answer == OK then changed = changed + 1 end
end
if changed > 0 then audit(changed, changed) end
flush_stats()
flush_acks()
return answers
