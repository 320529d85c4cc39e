--[[ op_end: no move; ends one run of a guarded operation of a running task
KEYS[1] prefix
ARGV[1] task id, lease, name of the operation, nonce of the run, outcome (done, failed), result (JSON; '': it cannot be
        kept), TTL ms
Answers a code: OK (done: kept; failed: the next run is the first again, unless an earlier one is in doubt); AGAIN (this
run has ended already); LOST; UNKNOWN; CORRUPT.
]]
-- @include codes operation
local id, lease, name, nonce, outcome, result, ttl = unpack(ARGV)
local record, refused = load_operation(id, lease, name)
if not record then return refused end
if record.state and (record.nonce ~= nonce or record.lease ~= lease) then return LOST end
if record.state == 'done' then return AGAIN end
local key = operation_key(id, name)
if outcome == 'done' then
  redis.call('HSET', key, 'state', 'done', 'lease', lease, 'nonce', nonce, 'result', result)
  redis.call('PEXPIRE', key, ttl)
elseif not record.state then
  return AGAIN
elseif not record.doubt then
  redis.call('DEL', key)
end
return OK
