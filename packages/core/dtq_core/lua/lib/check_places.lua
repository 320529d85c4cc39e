-- @include check_task
-- Whether what lies in the streams, schedules and beside the records still leads to a task that means it.

-- `place` is queue:band. A stale entry would be absorbed by whoever takes it; where nobody does, it stays.
local function check_stream_entry(place, entry)
  local queue, band = string.match(place, '^([^:]+):(%a+)$')
  local stream = stream_key(queue, band)
  if not sound_queue(queue, band) then return find('queue-blocked', queue) end
  local found = redis.call('XRANGE', stream, entry, entry)
  if #found == 0 then return end
  local id = field(found[1][2], 'id')
  local task, problem = peek_record(id)
  if problem == 'corrupt' then return end -- told where the record is
  if task and task.entry_id == entry and (task.status == 'QUEUED' or task.status == 'RUNNING') then return end
  find('entry-stale', stream .. ' ' .. entry, function()
    ack(stream, entry)
    count(queue, 'absorbed', 1)
    publish_event('TASK_DUPLICATE_ABSORBED', id, queue, '', 'stale: found by verify')
  end)
end

local SCHEDULES = {delay = DELAY_SCHEDULE, retry = RETRY_SCHEDULE, expiry = EXPIRY}
local SERVED = {delay = {SCHEDULED = true}, retry = {RETRYING = true}, expiry = WAITING}
local function check_member(schedule, id)
  local key = SCHEDULES[schedule]
  if not redis.call('ZSCORE', key, id) then return end
  local task, problem = peek_record(id)
  if problem == 'corrupt' or (task and SERVED[schedule][task.status]) then return end
  find('member-stale', key .. ' ' .. id, function() redis.call('ZREM', key, id) end)
end

-- A dead letter of a record that is no task's, or that is gone, is an operator's to look at.
local function check_letter(entry, id)
  if #redis.call('XRANGE', DLQ, entry, entry) == 0 then return end
  local task, problem = peek_record(id)
  if problem == 'corrupt' then return end
  if problem == 'missing' then return find('letter-orphan', id) end
  if task.status ~= 'DEAD_LETTERED' or task.letter_id ~= entry then
    find('letter-stale', id, function() redis.call('XDEL', DLQ, entry) end)
  end
end

local function check_attempts(id)
  local key = attempts_key(id)
  if redis.call('EXISTS', key) == 0 or redis.call('EXISTS', task_key(id)) == 1 then return end
  if redis.call('PTTL', key) == -1 then
    find('orphan', key, function() redis.call('PEXPIRE', key, DEFAULT_RETENTION_MS) end)
  end
end

local function check_result(id)
  local key = result_key(id)
  if redis.call('PTTL', key) == -1 then
    find('kept', key, function() redis.call('PEXPIRE', key, DEFAULT_RETENTION_MS) end)
  end
end

local function end_key(key) redis.call('PEXPIRE', key, DEFAULT_RETENTION_MS) end

-- A key is `processing`, without an end, for exactly as long as its task has not ended.
local function check_idempotency(name)
  local key = idem_key(name)
  local values = redis.pcall('HMGET', key, 'task', 'state')
  if failed_with(values, 'WRONGTYPE') then return find('foreign', key) end
  local passes = redis.call('PTTL', key)
  if passes == -2 then return end
  local task, problem = peek_record(values[1] or '')
  if problem == 'corrupt' then return end
  if not task or task.idem_key ~= name then
    if passes == -1 then find('idempotency-stuck', key, function() end_key(key) end) end
  elseif TERMINAL[task.status] then
    if passes == -1 or values[2] == 'processing' then
      find('idempotency-stuck', key, function()
        end_idempotency(task, task.status == 'SUCCEEDED' and 'completed' or 'failed')
      end)
    end
  elseif passes >= 0 or values[2] ~= 'processing' then
    find('idempotency-passing', key, function()
      redis.call('HSET', key, 'state', 'processing')
      redis.call('PERSIST', key)
    end)
  end
end

local function check_queue(queue)
  if redis.call('HEXISTS', QUEUES, queue) == 1 then return end
  find('queue-unknown', queue, function() redis.call('HSET', QUEUES, queue, '{}') end)
end
