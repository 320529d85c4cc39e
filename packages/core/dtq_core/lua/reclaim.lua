--[[ reclaim: RUNNING → RUNNING, DEAD_LETTERED, FAILED or CANCELLED; QUEUED → RUNNING or EXPIRED
KEYS[1] prefix
ARGV[1] events cap, [2] worker, [3] free slots, [4] payload bytes beyond the first task, [5] visibility timeout ms,
[6] suspects: 'leave' (for a process that runs nothing else), 'only' (this is one) or 'take' (they run like the others),
ARGV[7…] bands, each as queue, band, cursor of the last pass
Answers {absorbed, corrupt, tasks, cursors, suspects}: whether suspects are left. Takes entries that nobody has renewed for
the visibility timeout. A band with a key that is not ours is skipped and counted as corrupt; paused queues are passed over.
]]
-- @include take paused
local slots, byte_budget, idle_ms, suspects = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6]

-- A suspect may be what ends the processes that it is in: it was in two of them, or in one and has its last attempt left.
-- A crash that is still to be counted, of a task that is RUNNING, counts here.
local function is_suspect(task)
  local uncounted = task.status == 'RUNNING' and 1 or 0
  local crashes, attempt = (task.crashes or 0) + uncounted, task.attempt + uncounted
  local last = tonumber(task.max_attempts or 1)
  return not task.cancel_requested and attempt <= last and (crashes >= 2 or (crashes == 1 and attempt == last))
end

-- The fields of a start: under which lease a task runs alone.
local function as_started(task, fields)
  if suspects == 'only' then
    fields[#fields + 1] = 'alone'
    fields[#fields + 1] = (task.lease or 0) + 1
  end
  return fields
end

local function loss(task)
  local text = 'worker lost on attempt ' .. task.attempt .. ' of ' .. (task.max_attempts or 1)
  if not task.alone or task.alone ~= task.lease then return text end
  return text .. ', when the task ran alone in its process: the task ends it'
end

-- A running task whose worker is gone: the attempt has ended in a crash, and the next one is counted here, in one step.
local function restart_crashed(task, stream, entry)
  local sound_list = record_attempt_end(task, '"outcome":"crashed"}')
  task.crashes = (task.crashes or 0) + 1
  count(task.queue, 'reclaimed', 1)
  if sound_list and not task.cancel_requested and tonumber(task.attempt) < tonumber(task.max_attempts or 1) then
    publish_event('TASK_RECLAIMED', task.id, task.queue, task.attempt, 'worker lost')
    start(task, entry, task.attempt + 1, as_started(task, {'crashes', task.crashes}))
    return
  end
  redis.call('HSET', task_key(task.id), 'crashes', task.crashes)
  if not sound_list then
    fail_task(task, 'corrupt list of attempts')
  elseif task.cancel_requested then
    end_task(task, 'CANCELLED', task.cancel_reason or 'cancelled')
  else
    fail_task(task, loss(task))
  end
  ack(stream, entry)
end

local function full() return #taken >= slots or taken_bytes > byte_budget end

-- Answers whether the task is left for a process of its own.
local function take_overdue(stream, queue, entry, fields)
  local task = own_task(stream, queue, entry, fields)
  if task and suspects == 'leave' and is_suspect(task) then return true end
  if task and task.status == 'RUNNING' then
    restart_crashed(task, stream, entry)
  elseif task then
    start_queued(task, stream, entry, as_started(task, {}))
  end
end

local seen = 0
local function take_all(stream, queue, entries)
  local too_many, left = {}, {}
  seen = seen + #entries
  for i = 1, #entries do
    local found = entries[i] -- Redis 6.2 answers nil for an entry that was deleted by hand
    if found and full() then
      too_many[#too_many + 1] = found[1]
    elseif found then
      if take_overdue(stream, queue, found[1], found[2]) then left[#left + 1] = found[1] end
    end
  end
  give_back(stream, queue, too_many)
  claim_for(stream, SUSPECTS, left, 'JUSTID')
end

local function pending_for(consumer, stream, n)
  local pending = redis.pcall('XPENDING', stream, GROUP, '-', '+', n, consumer)
  return failed_with(pending, 'NOGROUP') and {} or pending
end

-- What was given back, left by a dead worker or set aside has a consumer of its own: found at once, however much is
-- running. Few are looked at in one call, so that a long list of stale ones does not hold up the server.
local MAX_SEEN = 500
local function take_from(consumer, stream, queue)
  while not full() and seen < MAX_SEEN do
    local pending = pending_for(consumer, stream, slots - #taken)
    if #pending == 0 then return end
    local args = {'XCLAIM', stream, GROUP, WORKER, 0}
    for i = 1, #pending do args[#args + 1] = pending[i][1] end
    take_all(stream, queue, redis.call(unpack(args)))
  end
  if consumer == OVERDUE then wake(queue, 'o') end
end

-- Entries of workers that fell silent. Redis looks at ten times COUNT a call; the cursor goes on from there.
local MIN_COUNT = 100
local function take_idle(stream, queue, cursor)
  local count = math.max(MIN_COUNT, slots - #taken)
  local reply = redis.pcall('XAUTOCLAIM', stream, GROUP, WORKER, idle_ms, cursor, 'COUNT', count)
  if failed_with(reply, 'NOGROUP') then return '0-0' end
  take_all(stream, queue, reply[2])
  return reply[1]
end

-- Where this worker's own heartbeat is late, or was just now, Redis or this machine stood still. Then the leases of others
-- look old as well: they must first have the time to renew them.
local function stood_still()
  local found = redis.pcall('HMGET', worker_key(WORKER), 'seen_ms', 'late_ms')
  if failed_with(found, 'WRONGTYPE') then return false end
  local seen, late = tonumber(found[1] or NOW), tonumber(found[2] or 0)
  return NOW - math.min(seen or NOW, NOW) > idle_ms / 2 or NOW - (late or 0) < idle_ms / 2
end
local leaves_idle = stood_still()

local function reclaim_band(queue, band, cursor)
  local stream = stream_key(queue, band)
  if full() then return cursor end
  if not sound_queue(queue, band) then
    corrupt = corrupt + 1
    return cursor
  end
  if is_missing(stream) or is_paused(queue) then return '0-0' end
  if suspects == 'only' then
    take_from(SUSPECTS, stream, queue)
    return cursor
  end
  take_from(OVERDUE, stream, queue)
  if full() or leaves_idle then return cursor end
  return take_idle(stream, queue, cursor)
end

local function any_suspects()
  for i = 7, #ARGV, 3 do
    local stream = stream_key(ARGV[i], ARGV[i + 1])
    if sound(stream, 'stream') and not is_missing(stream) and not is_paused(ARGV[i])
      and #pending_for(SUSPECTS, stream, 1) > 0 then return 1 end
  end
  return 0
end

local cursors, seen_all = {}, suspects ~= 'only'
for i = 7, #ARGV, 3 do
  local cursor = reclaim_band(ARGV[i], ARGV[i + 1], ARGV[i + 2])
  cursors[#cursors + 1] = cursor
  seen_all = seen_all and ARGV[i + 2] == '0-0' and cursor == '0-0'
end
-- Nothing overdue is left: what remains of the tokens for it would stop claims in vain. (A queue is named once a band.)
if seen_all and not full() and seen < MAX_SEEN then
  for i = 7, #ARGV, 3 do
    if ARGV[i + 1] == 'normal' and sound(wake_key(ARGV[i]), 'list') then
      redis.call('LREM', wake_key(ARGV[i]), 0, 'o')
    end
  end
end
return answer(cursors, suspects == 'take' and 0 or any_suspects())
