-- @include codes peek
-- The record of one guarded operation of a task. Its fields: state ('begun' or 'done'); lease and nonce of the run that
-- wrote it; doubt (1: an earlier run was cut off, and may have had its effect); result (JSON; '': none could be kept).

-- Returns the record of an operation, empty where there is none; or nil and a code: the lease is not current, or a key is
-- not ours.
local function load_operation(id, lease, name)
  local task, problem = peek_record(id)
  if problem == 'missing' then return nil, UNKNOWN end
  if not task then return nil, CORRUPT end
  if task.status ~= 'RUNNING' or task.lease ~= lease then return nil, LOST end
  local key = operation_key(id, name)
  if not sound(key, 'hash') then return nil, CORRUPT end
  local fields = redis.call('HGETALL', key)
  local record = {}
  for i = 1, #fields, 2 do record[fields[i]] = fields[i + 1] end
  return record
end
