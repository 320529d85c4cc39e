-- @include keys
-- Looks at the type of shared keys before anything is written: nothing may fail between two writes of a script.
-- Each key is looked at once a script. `guard` refuses the whole call; `sound` lets one item be refused alone.
local found_kind = {}
local function sound(key, kind)
  if not found_kind[key] then found_kind[key] = redis.call('TYPE', key)['ok'] end
  return found_kind[key] == 'none' or found_kind[key] == kind
end
-- Whether a key that was looked at is not there; an error of a command that finds out costs more.
local function is_missing(key) return found_kind[key] == 'none' end
local function guard(key, kind)
  if not sound(key, kind) then error('CORRUPT ' .. key .. ' is a ' .. found_kind[key] .. ', not a ' .. kind) end
end

-- Tells whether a reply is the one error that the caller can deal with. Any other one (no memory, no right, a server
-- that turned read-only) ends the script; callers ask before they have written anything.
local function failed_with(reply, word)
  if type(reply) ~= 'table' or not reply.err then return false end
  if not string.find(reply.err, word, 1, true) then error(reply.err) end
  return true
end

local sound_bands = {}
local function sound_queue(queue, band)
  local bands = sound_bands[queue]
  if not bands then
    bands = {}
    sound_bands[queue] = bands
  end
  if bands[band] == nil then
    bands[band] = sound(stream_key(queue, band), 'stream') and sound(stats_key(queue), 'hash')
      and sound(wake_key(queue), 'list')
  end
  return bands[band]
end
