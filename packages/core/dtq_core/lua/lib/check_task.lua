-- @include finding peek enqueue event terminal
-- Whether everything that belongs to a task is as its record says.

-- Whether entry a of a stream comes after entry b.
local function is_after(a, b)
  local a_ms, a_number = string.match(a, '^(%d+)%-(%d+)$')
  local b_ms, b_number = string.match(b, '^(%d+)%-(%d+)$')
  if a_ms ~= b_ms then return tonumber(a_ms) > tonumber(b_ms) end
  return tonumber(a_number) > tonumber(b_number)
end

-- The last entry that the group was given; '' where there is no group. Looked up once a stream: nothing is delivered here.
local delivered = {}
local function last_delivered(stream)
  if not delivered[stream] then
    delivered[stream] = ''
    for _, group in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
      if field(group, 'name') == GROUP then delivered[stream] = field(group, 'last-delivered-id') end
    end
  end
  return delivered[stream]
end

-- Where an entry is: 'pending', 'new' (still to be delivered), 'passed' (delivered, and pending for nobody) or 'gone'.
local function place_of(stream, entry)
  if redis.call('EXISTS', stream) == 0 or #redis.call('XRANGE', stream, entry, entry) == 0 then return 'gone' end
  local last = last_delivered(stream)
  if last == '' then return 'new' end -- the first claim makes the group, at the beginning
  if #redis.call('XPENDING', stream, GROUP, entry, entry, 1) > 0 then return 'pending' end
  return is_after(entry, last) and 'new' or 'passed'
end

local function is_alive(task) return task.worker and redis.call('EXISTS', worker_key(task.worker)) == 1 end

-- Gives an entry to a consumer again that was pending for nobody.
local function make_pending(stream, entry, task)
  if task.status == 'RUNNING' and is_alive(task) then
    claim_for(stream, task.worker, {entry}, 'FORCE', 'JUSTID')
  else
    claim_for(stream, OVERDUE, {entry}, 'IDLE', OVERDUE_MS, 'FORCE', 'JUSTID')
    wake(task.queue, 'o')
  end
end

local function say_repaired(task, what) publish_event('TASK_REPAIRED', task.id, task.queue, task.attempt, what) end

local function give_new_entry(task, stream)
  if task.status == 'QUEUED' then
    enqueue(task, {})
  else
    local entry = redis.call('XADD', stream, '*', 'id', task.id, 'attempt', task.attempt)
    move(task, 'RUNNING', {'entry_id', entry})
    make_pending(stream, entry, task)
  end
  say_repaired(task, 'its entry was gone')
end

-- A task that no worker can come upon would wait for ever. While the worker of a running one lives, that one needs no
-- entry to end it; a new one would have the worker run it a second time.
local function check_entry(task)
  local stream = stream_key(task.queue, task.band)
  local place = place_of(stream, task.entry_id)
  if place == 'passed' then
    find('entry-lost', task.id, function()
      make_pending(stream, task.entry_id, task)
      say_repaired(task, 'its entry was pending for nobody')
    end)
  elseif place == 'gone' and task.status == 'RUNNING' and is_alive(task) then
    find('entry-lost-running', task.id)
  elseif place == 'gone' then
    find('entry-lost', task.id, function() give_new_entry(task, stream) end)
  end
end

local function check_schedule(task, schedule)
  if redis.call('ZSCORE', schedule, task.id) then return end
  find('unscheduled', task.id, function()
    redis.call('ZADD', schedule, task.due_ms and is_number(task.due_ms) and task.due_ms or NOW, task.id)
    say_repaired(task, 'it was in no schedule')
  end)
end

local function check_expiry(task)
  if not task.expires_ms or redis.call('ZSCORE', EXPIRY, task.id) then return end
  find('expiry-missing', task.id, function() redis.call('ZADD', EXPIRY, task.expires_ms, task.id) end)
end

-- Record and attempts pass once the task has ended, unless it is a dead letter; never before.
local function check_life(task)
  local passes = TERMINAL[task.status] and task.status ~= 'DEAD_LETTERED'
  for _, key in ipairs({task_key(task.id), attempts_key(task.id)}) do
    local ttl = redis.call('PTTL', key)
    if passes and ttl == -1 then
      find('kept', key, function() redis.call('PEXPIRE', key, task.retention_ms or DEFAULT_RETENTION_MS) end)
    elseif not passes and ttl >= 0 then
      find('passing', key, function() redis.call('PERSIST', key) end)
    end
  end
end

local function check_has_letter(task)
  if is_entry(task.letter_id) and #redis.call('XRANGE', DLQ, task.letter_id, task.letter_id) > 0 then return end
  find('letter-missing', task.id, function()
    post_letter(task, redis.call('HGET', task_key(task.id), 'error') or '')
  end)
end

local checked = {}
local function check_task(id)
  local task, problem = peek_record(id)
  if problem == 'missing' then return end
  if not task then return find('record-corrupt', id) end
  if not sound_queue(task.queue, task.band) then return find('queue-blocked', task.queue) end
  if task.status == 'QUEUED' or task.status == 'RUNNING' then
    check_entry(task)
  elseif task.status == 'SCHEDULED' then
    check_schedule(task, DELAY_SCHEDULE)
  elseif task.status == 'RETRYING' then
    check_schedule(task, RETRY_SCHEDULE)
  end
  if WAITING[task.status] then check_expiry(task) end
  if task.status == 'DEAD_LETTERED' then check_has_letter(task) end
  check_life(task)
  checked[#checked + 1] = {id, task.status, task.queue}
end
