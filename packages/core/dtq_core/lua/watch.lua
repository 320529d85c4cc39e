--[[ watch: no move; marks tasks so that their end is announced on their channel
KEYS[1] prefix
ARGV the task ids
Answers {code, status} for each: OK (marked: wait for the announcement), ENDED, UNKNOWN, CORRUPT.
]]
-- @include codes peek
local function watch(id)
  local task, problem = peek_record(id)
  if problem == 'missing' then return {UNKNOWN, ''} end
  if not task then return {CORRUPT, ''} end
  if TERMINAL[task.status] then return {ENDED, task.status} end
  if not task.watched then redis.pcall('HSET', task_key(id), 'watched', 1) end -- a hint, as its announcement is
  return {OK, task.status}
end

local answers = {}
for i = 1, #ARGV do answers[i] = watch(ARGV[i]) end
return answers
