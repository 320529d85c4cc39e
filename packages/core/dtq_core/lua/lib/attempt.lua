-- @include task now
-- record_attempt_end: the first write of an outcome other than success, which needs no list: all that it would hold is in
-- the record, and nothing comes after it. `rest` is the JSON text after the common members, as
-- '"outcome":"crashed"}'; what the caller encoded is joined, never decoded. Answers false when the list is not ours.
local function record_attempt_end(task, rest)
  local text = '{"attempt":' .. task.attempt .. ',"lease":' .. (task.lease or 0) .. ',"worker":"' .. (task.worker or '')
    .. '","started_ms":' .. (task.started_ms or 'null') .. ',"ended_ms":' .. NOW .. ',' .. rest
  return not failed_with(redis.pcall('RPUSH', attempts_key(task.id), text), 'WRONGTYPE')
end
