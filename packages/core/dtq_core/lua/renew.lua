--[[ renew: no move; resets the idle time of entries whose lease is current, and stores progress
KEYS[1] prefix
ARGV[1] worker; then 3 a task: id, lease, progress (JSON, '': none)
Answers a code for each: OK; CANCEL (current, and cancelling was asked for); LOST; UNKNOWN; CORRUPT.
]]
-- @include codes task entry
local STRIDE = 3
local renewed = {}
local function renew(id, lease, progress)
  local task, problem = load_record(id)
  if problem == 'missing' then return UNKNOWN end
  if not task then return CORRUPT end
  if task.status ~= 'RUNNING' or task.lease ~= lease then return LOST end
  if progress ~= '' then redis.pcall('HSET', task_key(id), 'progress', progress) end -- no memory for it: no matter
  local stream = stream_key(task.queue, task.band)
  renewed[stream] = renewed[stream] or {}
  table.insert(renewed[stream], task.entry_id)
  return task.cancel_requested and CANCEL or OK
end

local answers = {}
for i = 2, #ARGV, STRIDE do answers[#answers + 1] = renew(unpack(ARGV, i, i + STRIDE - 1)) end
for stream, ids in pairs(renewed) do
  if sound(stream, 'stream') then claim_for(stream, ARGV[1], ids, 'JUSTID') end
end
return answers
