--[[ adopt: RUNNING → RUNNING under a new lease, same attempt; QUEUED → RUNNING or EXPIRED
KEYS[1] prefix
ARGV[1] events cap, [2] worker, [3] count of known entries, then these as 'queue:band:entry', then the bands as queue, band
Answers {absorbed, corrupt, tasks}: the worker's own pending entries that it does not know, because the reply that gave
them to it was lost. To be called only while no claim of this worker is under way.
]]
-- @include take
local MAX_UNKNOWN = 500
local known_count, known = tonumber(ARGV[3]), {}
for i = 4, 3 + known_count do known[ARGV[i]] = true end

local function adopt_entry(stream, queue, entry)
  local found = redis.call('XRANGE', stream, entry, entry)[1]
  local task = found and own_task(stream, queue, entry, found[2])
  if not found then
    ack(stream, entry)
  elseif task and task.status == 'RUNNING' then
    start(task, entry, task.attempt, {})
  elseif task then
    start_queued(task, stream, entry)
  end
end

for i = 4 + known_count, #ARGV, 2 do
  local queue, band = ARGV[i], ARGV[i + 1]
  local stream = stream_key(queue, band)
  if sound_queue(queue, band) then
    local pending = redis.pcall('XPENDING', stream, GROUP, '-', '+', known_count + MAX_UNKNOWN, WORKER)
    if failed_with(pending, 'NOGROUP') then pending = {} end
    for j = 1, #pending do
      local entry = pending[j][1]
      if not known[queue .. ':' .. band .. ':' .. entry] then adopt_entry(stream, queue, entry) end
    end
  else
    corrupt = corrupt + 1
  end
end
return answer()
