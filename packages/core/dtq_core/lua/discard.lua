--[[ discard: no move; dead letters are removed for good by an operator, with all that is kept of their tasks
KEYS[1] prefix
ARGV[1] events cap, [2…7] the operation (lib/audit.lua); then 2 a letter: its entry ('': that of the record), task id
Answers a code for each: OK; ENDED (the task is no dead letter any more, or is one anew: only that stale letter is
removed); UNKNOWN. Of a
letter without a record that is a task's, only the letter is removed. The audit log keeps the ids.
]]
-- @include drain codes audit peek event
guard(DLQ, 'stream')

local function end_key(task)
  local key = task.idem_key and idem_key(task.idem_key)
  local owner = key and redis.pcall('HGET', key, 'task')
  if key and not failed_with(owner, 'WRONGTYPE') and owner == task.id then redis.call('DEL', key) end
end

local function discard(entry, id)
  local task, problem = peek_record(id)
  local dead = task and task.status == 'DEAD_LETTERED'
  local own = dead and task.letter_id or ''
  if entry == '' then entry = own end
  local removed = is_entry(entry) and redis.call('XDEL', DLQ, entry) or 0
  if task and (not dead or entry ~= own) then return ENDED end
  if not dead and removed == 0 then return UNKNOWN end
  if dead then
    end_key(task)
    redis.call('DEL', task_key(id), attempts_key(id))
  end
  publish_event('TASK_DISCARDED', id, dead and task.queue or '', dead and task.attempt or '', REASON)
  return OK
end

local answers, ids = {}, {}
for i = 8, #ARGV, 2 do
  local answer = discard(ARGV[i], ARGV[i + 1])
  answers[#answers + 1] = answer
  if answer == OK then ids[#ids + 1] = ARGV[i + 1] end
end
if #ids > 0 then audit(#answers, #ids, table.concat(ids, ' ')) end
return answers
