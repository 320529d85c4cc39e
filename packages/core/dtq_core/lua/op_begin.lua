--[[ op_begin: no move; begins a guarded operation of a running task, unless it is done
KEYS[1] prefix
ARGV[1] task id, lease, name of the operation, nonce of this run, rerun (1: begin it also where an earlier run is in
        doubt), TTL ms
Answers {code, result}: OK (run it); DONE (the result; '': it could not be kept); DOUBT (an earlier run was cut off; with
rerun, run it); LOST; UNKNOWN; CORRUPT. The same nonce gets the same answer.
]]
-- @include codes operation
local id, lease, name, nonce, rerun, ttl = unpack(ARGV)
local record, refused = load_operation(id, lease, name)
if not record then return {refused, ''} end
if record.state == 'done' then return {DONE, record.result or ''} end
local mine = record.nonce == nonce and record.lease == lease
local doubt = record.doubt or (record.state and not mine)
if not mine and (not doubt or rerun == '1') then
  local key = operation_key(id, name)
  redis.call('HSET', key, 'state', 'begun', 'lease', lease, 'nonce', nonce, unpack(doubt and {'doubt', 1} or {}))
  redis.call('PEXPIRE', key, ttl)
end
return {doubt and DOUBT or OK, ''}
