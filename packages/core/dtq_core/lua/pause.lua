--[[ pause: no move; an operator pauses queues, or resumes them
KEYS[1] prefix
ARGV[1] events cap, [2…7] the operation (lib/audit.lua), [8] 1: pause, 0: resume; then the queues
Answers 1 for each queue whose state changed, else 0. From a paused queue nothing is taken: neither what is new in it nor
what a dead worker left. What runs goes on. Resumed, its workers are woken. A queue that nobody used yet is made known.
]]
-- @include drain audit paused event stats wake
guard(QUEUES, 'hash')
local pausing = ARGV[8] == '1'

-- Workers have not looked here since it was paused: whatever came meanwhile had its token taken in vain.
local function wake_all(queue)
  wake(queue, 'o')
  local queued = sound(stats_key(queue), 'hash') and redis.call('HGET', stats_key(queue), 'QUEUED') or 0
  for _ = 1, math.min(tonumber(queued) or 0, WAKE_CAP) do wake(queue, 'n') end
end

local function set_state(queue)
  if is_paused(queue) == pausing then return 0 end
  redis.call('HSET', QUEUES, queue, pausing and '{"paused_ms":' .. NOW .. '}' or '{}')
  paused_queues[queue] = pausing
  publish_event(pausing and 'QUEUE_PAUSED' or 'QUEUE_RESUMED', '', queue, '', REASON)
  if not pausing and sound(wake_key(queue), 'list') then wake_all(queue) end
  return 1
end

local answers, changed = {}, 0
for i = 8 + 1, #ARGV do
  local answer = set_state(ARGV[i])
  answers[#answers + 1] = answer
  changed = changed + answer
end
audit(#answers, changed)
flush_wakes()
return answers
