--[[ watch: no move; marks tasks so that their end is announced on their channel
KEYS[1] prefix
ARGV the task ids
Answers {code, status} for each: OK (marked: wait for the announcement), ENDED, UNKNOWN, CORRUPT.
]]
-- @include codes task
-- Not the whole record: payloads may be large, and many may be waited for.
local FIELDS = {'status', 'queue', 'band', 'entry_id', 'worker', 'watched', unpack(NUMBERS)}

local function watch(id)
  local values = redis.pcall('HMGET', task_key(id), unpack(FIELDS))
  if values.err then return {CORRUPT, ''} end
  local task = {}
  for i = 1, #FIELDS do task[FIELDS[i]] = values[i] or nil end
  if next(task) == nil then return {UNKNOWN, ''} end
  if not sound_record(task) then return {CORRUPT, ''} end
  if TERMINAL[task.status] then return {ENDED, task.status} end
  if not task.watched then redis.pcall('HSET', task_key(id), 'watched', 1) end -- a hint, as its announcement is
  return {OK, task.status}
end

local answers = {}
for i = 1, #ARGV do answers[i] = watch(ARGV[i]) end
return answers
