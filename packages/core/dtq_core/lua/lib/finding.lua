-- @include audit
-- What verify finds, and what of it it mends. ARGV[8]: what may be mended: 'nothing', 'lost' (tasks that nothing leads to
-- any more) or 'all'. The kinds are those of verify.py, which says what each means.
local MENDS = ARGV[8]
local LOST = {['entry-lost'] = true, ['unscheduled'] = true}
local findings, mended = {}, 0

-- `repair` is what mends it; without one it is only told.
local function find(kind, subject, repair)
  local mends = repair and (MENDS == 'all' or (MENDS == 'lost' and LOST[kind]))
  if mends then
    repair()
    mended = mended + 1
  end
  findings[#findings + 1] = {kind, subject, mends and 1 or 0}
end
