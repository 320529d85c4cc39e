-- The one clock: Redis time in milliseconds. Tests replace this file to turn the clock.
local function read_clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local NOW = read_clock()
