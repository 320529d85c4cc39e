-- @include task now
-- record_attempt_end: the first write of an outcome. `rest` is the JSON text after the common members, as
-- '"outcome":"succeeded"}'; what the caller encoded is joined, never decoded. Answers false when the list is not ours.
local function record_attempt_end(task, rest)
  local text = '{"attempt":' .. task.attempt .. ',"lease":' .. (task.lease or 0) .. ',"worker":"' .. (task.worker or '')
    .. '","started_ms":' .. (task.started_ms or 'null') .. ',"ended_ms":' .. NOW .. ',' .. rest
  local pushed = redis.pcall('RPUSH', attempts_key(task.id), text)
  if type(pushed) == 'number' then return true end
  if string.find(pushed.err, 'WRONGTYPE', 1, true) then return false end
  return redis.call('RPUSH', attempts_key(task.id), text) -- full or read-only: this raises what the server says
end
