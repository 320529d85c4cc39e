--[[ claim: QUEUED → RUNNING, or → EXPIRED
KEYS[1] prefix
ARGV[1] events cap, [2] worker, [3] free slots, [4] payload bytes beyond the first task,
ARGV[5…] bands to read, in this order, each as queue, band
Answers {absorbed, corrupt, tasks, overdue}. Takes no more than the free slots; passes a wake-up token on when more may
wait. Overdue is 1 where a token says that a dead worker left something: nothing is taken, reclaim is to come first. Paused
queues are passed over.
A band with a key that is not ours is skipped and counted as corrupt.
]]
-- @include take paused
local slots, byte_budget = tonumber(ARGV[3]), tonumber(ARGV[4])
local MAX_STEP, FIRST_STEP = 64, 8

-- New entries of a band. A group that is missing starts at the beginning.
local function read_new(stream, n)
  local reply = redis.pcall('XREADGROUP', 'GROUP', GROUP, WORKER, 'COUNT', n, 'STREAMS', stream, '>')
  if failed_with(reply, 'NOGROUP') then
    redis.call('XGROUP', 'CREATE', stream, GROUP, 0)
    reply = redis.call('XREADGROUP', 'GROUP', GROUP, WORKER, 'COUNT', n, 'STREAMS', stream, '>')
  end
  return reply and reply[1][2] or {}
end

-- Small at first, then as large as the payloads seen so far allow, so that little is read in vain.
local function next_step()
  local step = FIRST_STEP
  if #taken > 0 then
    local average = math.max(1, taken_bytes / #taken)
    step = math.max(1, math.min(MAX_STEP, math.floor((byte_budget - taken_bytes) / average)))
  end
  return math.min(step, slots - #taken)
end

-- Entries looked at in one call, so that a queue full of stale ones does not hold up the server.
local MAX_SEEN = 500
local seen = 0

local function full() return #taken >= slots or taken_bytes > byte_budget end

-- The entry of a running task comes as new where its group was deleted and made again: it stays with its worker.
local function take_new(stream, queue, entry, fields)
  seen = seen + 1
  local task = own_task(stream, queue, entry, fields)
  if task and task.status == 'QUEUED' then
    start_queued(task, stream, entry)
  elseif task then
    claim_for(stream, task.worker, {entry}, 'JUSTID')
  end
end

local function read_band(queue, band)
  local stream = stream_key(queue, band)
  if not sound_queue(queue, band) then
    corrupt = corrupt + 1
    return
  end
  if is_missing(stream) or is_paused(queue) then return end
  while not full() and seen < MAX_SEEN do
    local step, too_many = next_step(), {}
    local entries = read_new(stream, step)
    for i = 1, #entries do
      if full() then
        too_many[#too_many + 1] = entries[i][1]
      else
        take_new(stream, queue, entries[i][1], entries[i][2])
      end
    end
    give_back(stream, queue, too_many)
    if #entries < step then return end
  end
  wake(queue, 'n')
end

-- What a dead worker left comes before anything new. (A queue is named once a band; its tokens are looked at once.)
local function take_overdue_token()
  for i = 5, #ARGV, 2 do
    local tokens = wake_key(ARGV[i])
    if ARGV[i + 1] == 'normal' and sound(tokens, 'list') and not is_paused(ARGV[i])
      and redis.call('LREM', tokens, 1, 'o') > 0 then return true end
  end
  return false
end

if take_overdue_token() then return answer(1) end
for i = 5, #ARGV, 2 do
  if full() or seen >= MAX_SEEN then break end
  read_band(ARGV[i], ARGV[i + 1])
end
-- Nothing new waits any more: what is left of the tokens for new entries would wake workers in vain.
if not full() and seen < MAX_SEEN then
  for i = 5, #ARGV, 2 do
    if ARGV[i + 1] == 'normal' and sound(wake_key(ARGV[i]), 'list') then
      redis.call('LREM', wake_key(ARGV[i]), 0, 'n')
    end
  end
end
return answer(0)
