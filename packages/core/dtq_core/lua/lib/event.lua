-- @include keys guard
-- Publishes one lifecycle event; the stream keeps about the newest EVENTS_CAP.
local EVENTS_CAP = ARGV[1]
guard(EVENTS, 'stream')
local function publish_event(kind, id, queue, attempt, reason)
  if reason then
    redis.call('XADD', EVENTS, 'MAXLEN', '~', EVENTS_CAP, '*', 'type', kind, 'id', id,
      'queue', queue or '', 'attempt', attempt or '', 'reason', reason)
  else
    redis.call('XADD', EVENTS, 'MAXLEN', '~', EVENTS_CAP, '*', 'type', kind, 'id', id,
      'queue', queue or '', 'attempt', attempt or '')
  end
end
