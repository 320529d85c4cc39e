-- @include terminal entry wake
-- Handing a stream entry to a worker: shared by claim, reclaim and adopt.
local WORKER = ARGV[2]
local taken, taken_bytes, absorbed, corrupt = {}, 0, 0, 0

local function absorb(stream, entry, id, queue, attempt, reason)
  publish_event('TASK_DUPLICATE_ABSORBED', id, queue, attempt, reason)
  count(queue, 'absorbed', 1)
  ack(stream, entry)
  absorbed = absorbed + 1
end

-- A record that is not ours cannot run and must not stop those behind it: its entry moves to the DLQ, with the reason.
local function set_aside(stream, entry, id, queue)
  redis.call('XADD', DLQ, '*', 'id', id, 'queue', queue, 'attempt', '', 'reason', 'corrupt record')
  publish_event('TASK_CORRUPT', id, queue, '', 'corrupt record')
  ack(stream, entry)
  corrupt = corrupt + 1
end

-- → RUNNING under a new lease; the answer carries what the worker needs.
local function start(task, entry, attempt, fields)
  local lease = (task.lease or 0) + 1
  local leaves_expiry = task.expires_ms and task.status ~= 'RUNNING'
  local n = #fields
  fields[n + 1], fields[n + 2], fields[n + 3], fields[n + 4] = 'attempt', attempt, 'lease', lease
  fields[n + 5], fields[n + 6], fields[n + 7], fields[n + 8] = 'worker', WORKER, 'started_ms', NOW
  move(task, 'RUNNING', fields)
  if leaves_expiry then redis.call('ZREM', EXPIRY, task.id) end
  local payload = task.payload or ''
  taken_bytes = taken_bytes + #payload
  taken[#taken + 1] = {task.id, task.queue, task.band, entry, attempt, task.max_attempts or 1, lease, task.spec or '',
    payload, task.submitted_ms or 0, task.queued_ms or NOW, NOW, task.postponed_ms or 0, task.crashes or 0, task.releases or 0}
end

-- QUEUED → RUNNING; → EXPIRED when its TTL has ended.
local function start_queued(task, stream, entry, fields)
  if task.expires_ms and tonumber(task.expires_ms) <= NOW then
    end_task(task, 'EXPIRED', 'not started before its TTL ended')
    ack(stream, entry)
  else
    start(task, entry, task.attempt, fields or {})
  end
end

-- Looks an entry up. Returns its task when the entry is the one that the record means and the task waits for a worker
-- or is with one; deals with every other entry and returns nil.
local function own_task(stream, queue, entry, fields)
  local id = field(fields, 'id')
  local task, problem = load_task(id)
  if problem == 'missing' then
    absorb(stream, entry, id, queue, field(fields, 'attempt'), 'no record')
  elseif not task then
    set_aside(stream, entry, id, queue)
  elseif task.entry_id ~= entry or (task.status ~= 'QUEUED' and task.status ~= 'RUNNING') then
    absorb(stream, entry, id, queue, field(fields, 'attempt'), 'stale: the task is ' .. task.status)
  else
    return task
  end
end

-- What was read beyond the budget waits, overdue, for whoever has room.
local function give_back(stream, queue, entries)
  if #entries == 0 then return end
  make_overdue(stream, entries)
  for _ = 1, #entries do wake(queue, 'o') end
end

local function answer(...)
  flush_stats()
  flush_acks()
  flush_wakes()
  return {absorbed, corrupt, taken, ...}
end
