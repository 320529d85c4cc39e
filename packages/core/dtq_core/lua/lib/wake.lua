-- @include keys
-- Wake-up tokens: 'n' for a new entry, which claim takes, 'o' for an overdue one, which reclaim takes. An idle worker
-- waits for one; hints only, so a queue keeps no more than WAKE_CAP, for a short time.
local WAKE_CAP = 128
local WAKE_TTL_MS = 10000
local tokens = {n = {}, o = {}}
local function wake(queue, kind)
  tokens[kind][queue] = (tokens[kind][queue] or 0) + 1
end
local function flush_wakes()
  for kind, queues in pairs(tokens) do
    for queue, wanted in pairs(queues) do
      local pushed = {}
      for i = 1, math.min(wanted, WAKE_CAP) do pushed[i] = kind end
      if redis.call('RPUSH', wake_key(queue), unpack(pushed)) > WAKE_CAP then
        redis.call('LTRIM', wake_key(queue), -WAKE_CAP, -1)
      end
      redis.call('PEXPIRE', wake_key(queue), WAKE_TTL_MS)
    end
  end
end
