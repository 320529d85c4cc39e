-- @include codes enqueue event due
-- Taking in a task: shared by submit and fire. 13 arguments a task: id, queue, band, spec, payload, max attempts,
-- delay ms, TTL ms (-1: none), idempotency key ('': none), fingerprint, idempotency TTL ms, retention ms ('': default),
-- dead letter ('0': off).
local SUBMISSION = 13
guard(DELAY_SCHEDULE, 'zset')
guard(EXPIRY, 'zset')
guard(QUEUES, 'hash')

local registered = {}
local function register_queue(queue)
  if registered[queue] then return end
  redis.call('HSETNX', QUEUES, queue, '{}')
  registered[queue] = true
end

-- Answers for a key that is taken; nil when it is free. A record whose task is gone is no longer anybody's.
local function taken_key(id, key, fingerprint)
  local record = redis.pcall('HMGET', idem_key(key), 'task', 'state', 'fingerprint')
  if failed_with(record, 'WRONGTYPE') then return {CORRUPT, id, ''} end
  local owner = record[1]
  if not owner or owner == id or redis.call('EXISTS', task_key(owner)) == 0 then return nil end
  return {record[3] == fingerprint and DUPLICATE or CONFLICT, owner, record[2] or ''}
end

-- HSET comes first: a full server refuses only the first write of a script, and only one that takes memory.
local function reserve_key(id, key, fingerprint, ttl)
  redis.call('HSET', idem_key(key), 'task', id, 'state', 'processing', 'fingerprint', fingerprint, 'ttl_ms', ttl)
  redis.call('PERSIST', idem_key(key))
end

local function submit(id, queue, band, spec, payload, max_attempts, delay, ttl, key, fingerprint, key_ttl, retention,
                      dead_letter)
  local there, problem = load_task(id)
  if there then return {AGAIN, id, there.status} end
  if problem ~= 'missing' or not sound_queue(queue, band) then return {CORRUPT, id, ''} end
  if key ~= '' then
    local taken = taken_key(id, key, fingerprint)
    if taken then return taken end
    reserve_key(id, key, fingerprint, key_ttl)
  end

  local task = {id = id, queue = queue, band = band, attempt = 1}
  local fields = {'queue', queue, 'band', band, 'spec', spec, 'payload', payload, 'attempt', 1,
    'max_attempts', max_attempts, 'submitted_ms', NOW}
  local function set(name, value)
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  if key ~= '' then set('idem_key', key) end
  if retention ~= '' then set('retention_ms', retention) end
  if dead_letter == '0' then set('dead_letter', '0') end
  if tonumber(ttl) >= 0 then
    set('expires_ms', NOW + ttl)
    redis.call('ZADD', EXPIRY, NOW + ttl, id)
  end
  register_queue(queue)
  if tonumber(delay) > 0 then
    set('due_ms', NOW + delay)
    move(task, 'SCHEDULED', fields)
    schedule(DELAY_SCHEDULE, NOW + delay, id)
  else
    enqueue(task, fields)
  end
  publish_event('TASK_SUBMITTED', id, queue, 1)
  return {OK, id, task.status}
end
