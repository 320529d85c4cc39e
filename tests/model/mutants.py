"""Scripts that are broken on purpose: what the walk must find, or it proves nothing.

Each is the real script with a piece of its text replaced. A transition in two calls is shown at the
moment between them, when whoever makes the calls has just died.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import NamedTuple

from dtq_core.scripts import Script, load
from model.world import Scenario

PLAIN = Scenario(faults=1)
TIMED = Scenario(faults=1, ttl=2, delay=1)
REQUEUED = Scenario(max_attempts=1, releases=0, cancels=0, requeues=1, faults=0)
ALONE = Scenario(faults=2, isolation=True, cancels=0, releases=0)
POOR = Scenario(faults=1, max_attempts=1, dead_letter=False)


class Mutant(NamedTuple):
    """One way to break scripts.

    Attributes:
        what: is wrong with it.
        script: the broken one.
        text: of the real script.
        instead: what takes its place.
        told: a part of what the walk must say.
        scenario: in which it shows.
    """

    what: str
    script: str
    text: str
    instead: str
    told: str
    scenario: Scenario = PLAIN

    def scripts(self) -> dict[str, Script]:
        """The broken script, by its name."""
        real = load(self.script).text
        assert real.count(self.text) == 1, f"{self.what}: the text of {self.script} has changed"
        text = real.replace(self.text, self.instead)
        sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        return {self.script: Script(self.script, text, sha)}


_ACK = "  ack(stream_key(task.queue, task.band), task.entry_id)\n"
_COUNT_ON = "start(task, entry, task.attempt + 1,"
_ENDS_KEY = "  end_idempotency(task, status == 'SUCCEEDED' and 'completed' or 'failed')\n"
_LEASE_CHECK = "  if task.lease ~= lease then return {LOST, task.status} end\n"
_TAKEN = "    if taken then return taken end\n"

MUTANTS = (
    # submit
    Mutant(
        "a TTL is set at submit",
        "submit",
        "  publish_event('TASK_SUBMITTED'",
        "  redis.call('PEXPIRE', task_key(id), 86400000)\n  publish_event('TASK_SUBMITTED'",
        "its record would pass",
    ),
    Mutant(
        "a submit that is sent again is a new one",
        "submit",
        "  if there then return {AGAIN, id, there.status} end\n",
        "  if there then problem = 'missing' end\n",
        "submit answered OK, t0 was there",
    ),
    Mutant(
        "an idempotency key that is taken is taken over",
        "submit",
        _TAKEN,
        "",
        "share an idempotency key",
        Scenario(tasks=2, faults=0),
    ),
    # claim
    Mutant(
        "a claim does not compare the entry's id",
        "claim",
        "task.entry_id ~= entry or (",
        "(",
        "pending for w1",
    ),
    Mutant(
        "a claim starts what has expired",
        "claim",
        "if task.expires_ms and tonumber(task.expires_ms) <= NOW then",
        "if false then",
        "starts after its TTL",
        TIMED,
    ),
    Mutant(
        "a claim absorbs without XACK",
        "claim",
        "  ack(stream, entry)\n  absorbed = absorbed + 1\n",
        "  absorbed = absorbed + 1\n",
        "a stray entry of t0 is pending for w",
    ),
    Mutant(
        "a claim keeps the lease number",
        "claim",
        "local lease = (task.lease or 0) + 1",
        "local lease = task.lease or 1",
        "was handed out twice",
    ),
    # reclaim and adopt
    Mutant(
        "a reclaim does not count the attempt",
        "reclaim",
        _COUNT_ON,
        "start(task, entry, task.attempt,",
        "in 1 attempts and 0 releases",
    ),
    Mutant(
        "a reclaim starts a task once too often",
        "reclaim",
        "tonumber(task.attempt) < tonumber(task.max_attempts or 1)",
        "true",
        "is at attempt 2 of 1",
        POOR,
    ),
    Mutant(
        "a reclaim starts what was to be cancelled",
        "reclaim",
        "if sound_list and not task.cancel_requested and",
        "if sound_list and",
        "though it was to be cancelled",
    ),
    Mutant(
        "a reclaim gives the lease of before",
        "reclaim",
        "local lease = (task.lease or 0) + 1",
        "local lease = task.lease or 1",
        "was handed out twice",
    ),
    Mutant(
        "a reclaim takes from those that are not silent",
        "reclaim",
        "WORKER, idle_ms, cursor",
        "WORKER, 0, cursor",
        "which is not silent",
    ),
    Mutant(
        "a reclaim leaves the record of the crash out",
        "reclaim",
        """local sound_list = record_attempt_end(task, '"outcome":"crashed"}')""",
        "local sound_list = true",
        "0 ended attempts",
    ),
    Mutant(
        "an adopt gives no new lease",
        "adopt",
        "local lease = (task.lease or 0) + 1",
        "local lease = task.lease or 1",
        "was handed out twice",
    ),
    Mutant(
        "an adopt hands nothing over",
        "adopt",
        "  elseif task and task.status == 'RUNNING' then\n",
        "  elseif task and task.status == 'RUNNING' then return\n  elseif false then\n",
        "no way leads on",
    ),
    Mutant(
        "a reclaim does not look at what is to run alone",
        "reclaim",
        "    take_from(SUSPECTS, stream, queue)\n",
        "",
        "no way leads on",
        ALONE,
    ),
    Mutant(
        "a reclaim does not look at what was given back",
        "reclaim",
        "  take_from(OVERDUE, stream, queue)\n  if full() or leaves_idle then return cursor end\n"
        "  return take_idle(stream, queue, cursor)\n",
        "  return cursor\n",
        "no way leads on",
    ),
    # finish
    Mutant(
        "ACK before the hash",
        "finish",
        "  if outcome ~= 'succeeded' and not record_attempt_end(",
        f"{_ACK}  if true then return {{OK, task.status}} end\n"
        "  if outcome ~= 'succeeded' and not record_attempt_end(",
        "t0 is RUNNING, without an entry",
    ),
    Mutant(
        "a finish does not check the lease",
        "finish",
        _LEASE_CHECK,
        "",
        "not current, finish: OK",
    ),
    Mutant(
        "a finish is carried out twice",
        "finish",
        "  if task.status ~= 'RUNNING' then return {AGAIN, task.status} end\n",
        "",
        "not current, finish: OK",
    ),
    Mutant(
        "a finish forgets the XACK",
        "finish",
        f"{_ACK}  return {{OK, task.status}}",
        "  return {OK, task.status}",
        "has an entry too many",
    ),
    Mutant(
        "a finish forgets the idempotency record",
        "finish",
        _ENDS_KEY,
        "",
        "the idempotency record says",
    ),
    Mutant(
        "a retry is not scheduled",
        "finish",
        "  schedule(RETRY_SCHEDULE, due, task.id)\n",
        "",
        "the retries are [], not ['t0']",
    ),
    Mutant(
        "a retry leaves out what was asked of it: to be cancelled",
        "finish",
        "  if task.cancel_requested and outcome ~= 'succeeded' then outcome = 'cancelled' end\n",
        "",
        "though it was to be cancelled",
    ),
    Mutant(
        "a dead letter is not written",
        "finish",
        "elseif status == 'DEAD_LETTERED' then\n    post_letter(",
        "elseif false then\n    post_letter(",
        "0 times among the dead letters",
    ),
    # requeue
    Mutant(
        "a requeue leaves the dead letter",
        "requeue",
        "if is_entry(task.letter_id) then redis.call('XDEL', DLQ, task.letter_id) end",
        "",
        "1 times among the dead letters",
        REQUEUED,
    ),
    Mutant(
        "a requeue lets the record pass",
        "requeue",
        "redis.call('PERSIST', task_key(id))",
        "",
        "its record would pass",
        replace(REQUEUED, dead_letter=False),
    ),
    Mutant(
        "a purge ends what runs",
        "purge",
        "if not WAITING[task.status] then return REQUESTED end",
        "",
        "RUNNING to CANCELLED by purge",
        Scenario(releases=0, cancels=0, purges=1, faults=0),
    ),
    # renew, release, abandon
    Mutant(
        "a renewal does not ask who the owner is",
        "renew",
        "if task.status ~= 'RUNNING' or task.lease ~= lease then",
        "if task.status ~= 'RUNNING' then",
        "not current, renew: OK",
    ),
    Mutant(
        "a renewal renews nothing",
        "renew",
        "then claim_for(stream, ARGV[1], ids, 'JUSTID') end",
        "then return answers end",
        "was renewed, and its entry is old",
    ),
    Mutant(
        "a release spends an attempt",
        "release",
        "'worker', ''}",
        "'attempt', task.attempt + 1}",
        "t0 is QUEUED at 2, 0 ended attempts",
    ),
    Mutant(
        "a release does not check the lease",
        "release",
        "if task.lease ~= lease or task.status ~= 'RUNNING' then",
        "if task.status ~= 'RUNNING' then",
        "not current, release: OK",
    ),
    Mutant(
        "a release leaves the entry with the worker that goes",
        "release",
        "for stream, ids in pairs(overdue) do make_overdue(stream, ids) end\n",
        "",
        "which is QUEUED elsewhere",
    ),
    Mutant(
        "an abandoned consumer is deleted with what it has pending",
        "abandon",
        "  if #ids > 0 then make_overdue(stream, ids) end\n"
        "  moved = moved + #ids\n"
        "  local rest = #redis.call('XPENDING', stream, GROUP, '-', '+', 1, worker)\n",
        "  local rest = 0\n",
        "pending for nobody",
    ),
    # cancel, promote, expire
    Mutant(
        "a cancel overwrites RUNNING",
        "cancel",
        "  if WAITING[task.status] then\n",
        "  if true then\n",
        "went from RUNNING to CANCELLED by cancel",
    ),
    Mutant(
        "a cancel leaves the entry",
        "cancel",
        "    ack(stream_key(task.queue, task.band), task.entry_id)\n",
        "",
        "has an entry too many",
    ),
    Mutant(
        "a cancel undoes an end",
        "cancel",
        "  if TERMINAL[task.status] then return {ENDED, task.status} end\n"
        "  if WAITING[task.status] then\n",
        "  if WAITING[task.status] or TERMINAL[task.status] then\n",
        "a task went from SUCCEEDED to CANCELLED by cancel",
    ),
    Mutant(
        "promote in two steps, the schedule first",
        "promote",
        "  enqueue(task, fields)\n  redis.call('ZREM', SCHEDULE, task.id)\n",
        "  redis.call('ZREM', SCHEDULE, task.id)\n  if true then return end\n",
        "the delays are [], not ['t0']",
        TIMED,
    ),
    Mutant(
        "a promotion does not count the attempt",
        "promote",
        "    task.attempt = task.attempt + 1\n",
        "",
        "t0 is QUEUED at 1, 1 ended attempts",
    ),
    Mutant(
        "a promotion leaves the schedule",
        "promote",
        "  redis.call('ZREM', SCHEDULE, task.id)\n  publish_event('TASK_QUEUED'",
        "  publish_event('TASK_QUEUED'",
        "not []",
        TIMED,
    ),
    Mutant(
        "a claim leaves the expiry, for the sweeper to find a running task",
        "claim",
        "  if leaves_expiry then redis.call('ZREM', EXPIRY, task.id) end\n",
        "",
        "the expiry are ['t0'], not []",
        TIMED,
    ),
    Mutant(
        "an expiry takes a task only off its list",
        "expire",
        "  elseif task and WAITING[task.status] and task.expires_ms then\n",
        "  elseif false then\n",
        "the expiry are []",
        TIMED,
    ),
    Mutant(
        "an expiry ends a task that runs",
        "expire",
        "local ids = redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', NOW, 'LIMIT', 0, ARGV[2])\n"
        "for i = 1, #ids do expire(ids[i]) end\n",
        "local ids = redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', NOW, 'LIMIT', 0, ARGV[2])\n"
        "WAITING.RUNNING = true\nexpire('t0')\n",
        "went from RUNNING to EXPIRED by expire",
        Scenario(tasks=2, same_key=False, faults=0, ttl=2),
    ),
)
