--[[ abandon: no move; the entries of a dead worker become overdue, so that the next reclaim takes them
KEYS[1] prefix
ARGV[1] the dead worker, [2] how many entries a band at most; then the bands as queue, band
Answers {moved, left}; call again while some are left. The consumer is deleted only where nothing is pending, tested in
this same step: deleting a consumer destroys its pending list.
]]
-- @include guard wake entry
local worker, moved, left = ARGV[1], 0, 0
local function abandon_band(queue, band)
  local stream = stream_key(queue, band)
  if not sound_queue(queue, band) then return end
  local pending = redis.pcall('XPENDING', stream, GROUP, '-', '+', ARGV[2], worker)
  if failed_with(pending, 'NOGROUP') then return end
  local ids = {}
  for i = 1, #pending do
    ids[i] = pending[i][1]
    wake(queue, 'o')
  end
  if #ids > 0 then make_overdue(stream, ids) end
  moved = moved + #ids
  local rest = #redis.call('XPENDING', stream, GROUP, '-', '+', 1, worker)
  if rest == 0 then redis.call('XGROUP', 'DELCONSUMER', stream, GROUP, worker) end
  left = left + rest
end

for i = 3, #ARGV, 2 do abandon_band(ARGV[i], ARGV[i + 1]) end
if left == 0 then
  redis.call('ZREM', WORKERS, worker)
  redis.call('DEL', worker_key(worker))
end
flush_wakes()
return {moved, left}
