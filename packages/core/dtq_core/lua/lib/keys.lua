-- Spells every key of one partition, as keyspace.py does on the other side (a test compares the two).
-- All keys share the prefix KEYS[1], so that a partition lies in one slot of a cluster.
local P = KEYS[1]
local GROUP = 'workers'
-- The consumer that holds entries which no process works on: given back, or left by a dead worker.
local OVERDUE = 'overdue'
-- The consumer that holds entries of tasks which are to run alone.
local SUSPECTS = 'suspects'
local BANDS = {critical = true, high = true, normal = true, low = true}

local EVENTS = P .. ':events'
local DLQ = P .. ':dlq'
local QUEUES = P .. ':queues'
local AUDIT = P .. ':audit'
local AUDIT_HEAD = P .. ':audit:head'
local WORKERS = P .. ':workers'
local EXPIRY = P .. ':expiry'
local RETRY_SCHEDULE = P .. ':retry:schedule'
local DELAY_SCHEDULE = P .. ':delay:schedule'
local CRON = P .. ':cron'
local CRON_SCHEDULE = P .. ':cron:schedule'
local CRON_STATE = P .. ':cron:state'
local MARK = P .. ':mark'
local API_KEYS = P .. ':apikeys'
local DUE_CHANNEL = P .. ':due'

local function task_key(id) return P .. ':task:' .. id end
local function attempts_key(id) return P .. ':attempts:' .. id end
local function result_key(id) return P .. ':result:' .. id end
local function done_channel(id) return P .. ':done:' .. id end
local function idem_key(key) return P .. ':idem:' .. key end
local function operation_key(id, name) return P .. ':op:' .. id .. ':' .. name end
local function stream_key(queue, band) return P .. ':stream:' .. queue .. ':' .. band end
local function wake_key(queue) return P .. ':wake:' .. queue end
local function stats_key(queue) return P .. ':stats:' .. queue end
local function worker_key(worker) return P .. ':worker:' .. worker end
