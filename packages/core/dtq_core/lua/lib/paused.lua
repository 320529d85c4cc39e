-- @include guard
-- Whether an operator has paused a queue: then nothing is taken from it. Looked up once a queue.
local paused_queues = {}
local function is_paused(queue)
  if paused_queues[queue] == nil then
    local state = sound(QUEUES, 'hash') and redis.call('HGET', QUEUES, queue)
    paused_queues[queue] = state and string.find(state, '"paused_ms"', 1, true) ~= nil or false
  end
  return paused_queues[queue]
end
