-- @include keys
-- Counts per queue, added up over the batch and written once by flush_stats: how many tasks stand in each
-- waiting or running status, how many ever ended in each terminal one, how many moves were made, and what was absorbed,
-- reclaimed, released.
local counted = {}
local function count(queue, name, n)
  local counts = counted[queue]
  if not counts then
    counts = {}
    counted[queue] = counts
  end
  counts[name] = (counts[name] or 0) + n
end
local function flush_stats()
  for queue, counts in pairs(counted) do
    for name, n in pairs(counts) do
      -- A field that is no number is an operator's doing; it must not stop a script between its writes.
      if n ~= 0 then redis.pcall('HINCRBY', stats_key(queue), name, n) end
    end
  end
end
