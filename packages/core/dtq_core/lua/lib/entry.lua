-- @include keys
-- Stream entries. An entry is acknowledged and deleted in one step, gathered over the batch: flush_acks runs last.
local acks = {}
local function ack(stream, entry)
  local ids = acks[stream]
  if not ids then
    ids = {}
    acks[stream] = ids
  end
  ids[#ids + 1] = entry
end
local function flush_acks()
  for stream, ids in pairs(acks) do
    redis.pcall('XACK', stream, GROUP, unpack(ids)) -- fails only where there is no stream: then there is no entry
    redis.call('XDEL', stream, unpack(ids))
  end
end

local function claim_for(stream, consumer, ids, ...)
  local args = {'XCLAIM', stream, GROUP, consumer, 0}
  for i = 1, #ids do args[#args + 1] = ids[i] end
  for _, option in ipairs({...}) do args[#args + 1] = option end
  redis.pcall(unpack(args)) -- fails only where the stream or group was deleted: then nothing is pending
end

-- Puts entries where the next reclaim finds them first: idle for longer than any visibility timeout.
local OVERDUE_MS = 1000 * 86400 * 3650
local function make_overdue(stream, ids)
  claim_for(stream, OVERDUE, ids, 'IDLE', OVERDUE_MS, 'JUSTID')
end
