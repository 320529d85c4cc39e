-- @include guard
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

-- The value of a field in an entry's flat list of fields.
local function field(fields, name)
  for i = 1, #fields, 2 do
    if fields[i] == name then return fields[i + 1] end
  end
  return ''
end

-- Calls `act` with as many ids as Lua can unpack.
local UNPACKED = 1000
local function in_chunks(ids, act)
  for first = 1, #ids, UNPACKED do act(unpack(ids, first, math.min(first + UNPACKED - 1, #ids))) end
end

local function flush_acks()
  for stream, ids in pairs(acks) do
    in_chunks(ids, function(...)
      failed_with(redis.pcall('XACK', stream, GROUP, ...), 'NOGROUP')
      redis.call('XDEL', stream, ...)
    end)
  end
end

-- Gives pending entries to a consumer. Where the stream or the group was deleted nothing is pending.
local function claim_for(stream, consumer, ids, ...)
  local options = {...}
  in_chunks(ids, function(...)
    local args = {'XCLAIM', stream, GROUP, consumer, 0, ...}
    for _, option in ipairs(options) do args[#args + 1] = option end
    failed_with(redis.pcall(unpack(args)), 'NOGROUP')
  end)
end

-- Puts entries where the next reclaim finds them first: idle for longer than any visibility timeout.
local OVERDUE_MS = 1000 * 86400 * 3650
local function make_overdue(stream, ids)
  claim_for(stream, OVERDUE, ids, 'IDLE', OVERDUE_MS, 'JUSTID')
end
