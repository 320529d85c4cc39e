-- @include keys now
-- Schedules a task, and tells the leading scheduler where that makes it the first one due: it sleeps until then. A hint
-- only; the scheduler also looks by itself, now and then.
local earliest = {}
local function schedule(key, due, id)
  redis.call('ZADD', key, due, id)
  earliest[key] = math.min(due, earliest[key] or due)
end

local function flush_due()
  for key, due in pairs(earliest) do
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if tonumber(first[2]) >= due then
      redis.pcall('PUBLISH', DUE_CHANNEL, math.max(0, due - NOW)) -- the right to it may be missing
    end
  end
end
