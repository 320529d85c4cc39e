--[[ watch: no move; marks tasks so that their end is announced on their channel
KEYS[1] prefix
ARGV the task ids
Answers {code, status} for each: OK (marked: wait for the announcement), ENDED, UNKNOWN, CORRUPT.
]]
-- @include codes task
local answers = {}
for i = 1, #ARGV do
  local task, problem = load_task(ARGV[i])
  if problem == 'missing' then
    answers[i] = {UNKNOWN, ''}
  elseif not task then
    answers[i] = {CORRUPT, ''}
  elseif TERMINAL[task.status] then
    answers[i] = {ENDED, task.status}
  else
    if not task.watched then redis.call('HSET', task_key(ARGV[i]), 'watched', 1) end
    answers[i] = {OK, task.status}
  end
end
return answers
