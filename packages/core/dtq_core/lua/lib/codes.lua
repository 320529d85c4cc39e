-- Answer codes; scripts.py holds the same numbers as an enum (a test compares the two).
local OK = 0         -- done
local AGAIN = 1      -- this very call was carried out before; nothing was done now
local DUPLICATE = 2  -- the idempotency key belongs to an existing task
local CONFLICT = 3   -- the same, and that task was another request
local LOST = 4       -- the lease is not current
local UNKNOWN = 5    -- no such task
local ENDED = 6      -- the task is terminal already
local REQUESTED = 7  -- the task is running; its worker has been asked to stop
local CORRUPT = 8    -- a key of this task holds something that is not ours
local CANCEL = 9     -- the lease is current, and the task is to be cancelled
local DONE = 10    -- the operation was done before
local DOUBT = 11   -- an earlier run of the operation was cut off: nobody knows how far it came
