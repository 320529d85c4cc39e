-- @include guard now
-- The operators' log: what was done, by whom, when and why, written in the very step that does it. Each entry carries a
-- hash of itself and of the one before it, so a cut or edited log shows (audit.py checks). Scripts that include this take
-- ARGV[2] how many entries are kept (0: all), [3] operation, [4] action, [5] who, [6] reason, [7] scope.
guard(AUDIT, 'stream')
guard(AUDIT_HEAD, 'hash')
local AUDIT_CAP, OPERATION, ACTION, WHO, REASON, SCOPE = tonumber(ARGV[2]), unpack(ARGV, 3, 7)
local MAX_TRIMMED = 1000
local audit_head = redis.call('HMGET', AUDIT_HEAD, 'number', 'hash')

-- The length before each value keeps two different entries from reading the same.
local function joined(values)
  local parts = {}
  for i = 1, #values do parts[i] = #tostring(values[i]) .. ':' .. values[i] end
  return table.concat(parts, ',')
end

-- `ids`: the tasks that are gone from Redis afterwards, joined by spaces; '' where none is.
local function audit(matched, changed, ids)
  local number = (tonumber(audit_head[1] or 0) or 0) + 1
  local values = {number, NOW, OPERATION, ACTION, WHO, REASON, SCOPE, matched, changed, ids or ''}
  local hash = redis.sha1hex((audit_head[2] or '') .. '\n' .. joined(values))
  redis.call('XADD', AUDIT, '*', 'number', number, 'at_ms', NOW, 'operation', OPERATION, 'action', ACTION, 'who', WHO,
    'reason', REASON, 'scope', SCOPE, 'matched', matched, 'changed', changed, 'ids', ids or '', 'hash', hash)
  redis.call('HSET', AUDIT_HEAD, 'number', number, 'hash', hash)
  if AUDIT_CAP > 0 then
    local trimmed = redis.call('XTRIM', AUDIT, 'MAXLEN', '~', AUDIT_CAP, 'LIMIT', MAX_TRIMMED)
    redis.pcall('HINCRBY', AUDIT_HEAD, 'trimmed', trimmed)
  end
  audit_head = {number, hash}
end
