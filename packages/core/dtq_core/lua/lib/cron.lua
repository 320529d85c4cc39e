-- @include guard
-- Recurring tasks. A schedule's definition is text that no script reads; when it fires next is its score. Beside it is
-- kept what happened: the last slot that was fired, its task, and whether an operator paused it.
guard(CRON, 'hash')
guard(CRON_SCHEDULE, 'zset')
guard(CRON_STATE, 'hash')
local function slot_field(name) return name .. ':slot' end
local function task_field(name) return name .. ':task' end
local function paused_field(name) return name .. ':paused' end
