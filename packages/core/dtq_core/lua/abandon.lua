--[[ abandon: no move; the entries of a dead worker become overdue, so that the next reclaim takes them
KEYS[1] prefix
ARGV[1] the dead worker, [2] 1 if the caller saw it die; 0: it is dead only if its heartbeat has run out,
[3] how many entries a band at most; then the bands as queue, band
Answers {moved, left}, {0, 0} for a worker that is alive; call again while some are left. The consumer is deleted only
where nothing is pending, tested in this same step: deleting a consumer destroys its pending list.
]]
-- @include guard wake entry
guard(WORKERS, 'zset')
local worker, moved, left = ARGV[1], 0, 0
local function abandon_band(queue, band)
  local stream = stream_key(queue, band)
  if not sound_queue(queue, band) then return end
  local pending = redis.pcall('XPENDING', stream, GROUP, '-', '+', ARGV[3], worker)
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

if ARGV[2] == '0' and redis.call('EXISTS', worker_key(worker)) == 1 then return {0, 0} end
for i = 4, #ARGV, 2 do abandon_band(ARGV[i], ARGV[i + 1]) end
if left == 0 then
  redis.call('ZREM', WORKERS, worker)
  redis.call('DEL', worker_key(worker))
end
flush_wakes()
return {moved, left}
