"""What holds in every state and for every step, whatever happened before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dtq_core.calls import Ended, Submitted, Taken
from dtq_core.scripts import Code
from dtq_core.states import TERMINAL, TRANSITIONS, Status
from model.carry import Edge
from model.snapshot import NO_RECORD, Record, View
from model.world import NOBODY, Memory, State, Step

Move = tuple[str | None, str, str]
"""From which status, to which, by which script."""
LEGAL: set[Move] = {(move.source, move.target, move.script) for move in TRANSITIONS}
WAITING = frozenset({Status.SCHEDULED, Status.QUEUED, Status.RETRYING})
_IDEMPOTENCY = {Status.SUCCEEDED: "completed"}


def wrong_step(edge: Edge) -> Iterator[str]:
    """Everything that is wrong with a step: what it answered, and what it made of each task."""
    before, step, _, after = edge
    if step.act is None:
        return
    yield from _wrong_answer(edge)
    for source, target, script in moves_in(edge):
        if (source, target, script) not in LEGAL:
            yield f"a task went from {source} to {target or 'nowhere'} by {script}"
    for task_id, was in _there(before):
        yield from _wrong_move(task_id, was, after.view.records[task_id], before.memory.now_ms)


def moves_in(edge: Edge) -> Iterator[Move]:
    """The moves that were made; a task that goes on RUNNING under a new lease makes one, too."""
    before, step, _, after = edge
    for task_id, record in after.view.records.items():
        was = before.view.records.get(task_id, NO_RECORD)
        again = was.number("lease") != record.number("lease") and record.status == Status.RUNNING
        if was.status != record.status or again:
            yield was.status or None, record.status, step.script


def _there(state: State) -> Iterator[tuple[str, Record]]:
    return ((i, record) for i, record in state.view.records.items() if record.status)


def is_at_rest(state: State, tasks: int) -> bool:
    """Whether all was submitted and has ended, and nothing is left in the stream."""
    records, accepted = state.view.records, state.memory.accepted
    ended = all(records[task_id].status in TERMINAL for task_id in accepted)
    return len(accepted) == tasks and ended and not state.view.entries


def wrong_state(state: State) -> Iterator[str]:
    """Everything that is wrong with a state by itself."""
    view, memory = state.view, state.memory
    for task_id, record in view.records.items():
        if record.status:
            yield from _wrong_record(task_id, record)
            yield from _unreachable(task_id, record, view)
            yield from _wrong_counts(task_id, record, memory)
        elif task_id in memory.accepted:
            yield f"{task_id} was accepted and is gone"
    yield from _wrong_leases(view, memory)
    yield from _wrong_entries(view, memory)
    yield from _wrong_members(view)
    yield from _wrong_key(view)
    yield from _wrong_counters(view)
    if view.other_keys:
        yield "there are keys of nobody"


# one task


def _wrong_record(task_id: str, record: Record) -> Iterator[str]:
    status = Status(record.status)
    passes = status in TERMINAL and status != Status.DEAD_LETTERED
    if record.passes is not passes:
        yield f"{task_id} is {status}, its record {'stays' if passes else 'would pass'}"
    if record.attempts and record.attempts_pass is not passes:
        yield f"{task_id} is {status}, its attempts {'stay' if passes else 'would pass'}"
    if record.has_result is not (status == Status.SUCCEEDED):
        yield f"{task_id} is {status}, it has {'a' if record.has_result else 'no'} result"


def _unreachable(task_id: str, record: Record, view: View) -> Iterator[str]:
    """No accepted task is lost: a worker, a schedule or the dead letters lead to it."""
    if record.status in (Status.QUEUED, Status.RUNNING):
        entry = view.entries.get(record.fields["entry_id"])
        if entry is None:
            yield f"{task_id} is {record.status}, without an entry"
        elif entry.delivered and not entry.consumer:
            yield f"{task_id} is {record.status}, its entry is delivered and pending for nobody"
        elif record.status == Status.RUNNING and not entry.delivered:
            yield f"{task_id} is RUNNING, its entry is not delivered"
    letters = view.letters.count(task_id)
    if letters != (record.status == Status.DEAD_LETTERED):
        yield f"{task_id} is {record.status}, {letters} times among the dead letters"


def _wrong_counts(task_id: str, record: Record, memory: Memory) -> Iterator[str]:
    attempt, most = record.number("attempt"), record.number("max_attempts")
    if attempt > most:
        yield f"{task_id} is at attempt {attempt} of {most}"
    executions = dict(memory.executions).get(task_id, 0)
    releases, before = record.number("releases"), most * record.number("requeues")
    if executions > before + attempt + releases:
        yield f"{task_id} ran {executions} times in {attempt} attempts and {releases} releases"
    if before:
        return
    ended = range(attempt - 1, attempt)
    if record.status in (Status.CANCELLED, Status.EXPIRED):
        ended = range(attempt - 1, attempt + 1)
    elif record.status == Status.RETRYING or record.status in TERMINAL - {Status.SUCCEEDED}:
        ended = range(attempt, attempt + 1)
    if record.attempts not in ended:
        yield f"{task_id} is {record.status} at {attempt}, {record.attempts} ended attempts"


def _wrong_move(task_id: str, was: Record, now: Record, now_ms: int) -> Iterator[str]:
    starts = now.status == Status.RUNNING and now.number("lease") != was.number("lease")
    late = was.number("expires_ms") <= now_ms if "expires_ms" in was.fields else False
    if starts and was.status == Status.QUEUED and late:
        yield f"{task_id} starts after its TTL"
    if "cancel_requested" in was.fields and _goes_on(was, now):
        yield f"{task_id} goes on as {now.status}, though it was to be cancelled"
    requeued = now.number("requeues") > was.number("requeues")
    earlier = now.number("attempt") < was.number("attempt") and not requeued
    if earlier or now.number("lease") < was.number("lease"):
        yield f"{task_id} went back to attempt {now.fields['attempt']}"


def _goes_on(was: Record, now: Record) -> bool:
    if now.status == Status.RUNNING:
        return now.fields["attempt"] != was.fields["attempt"]
    return was.status == Status.RUNNING and now.status not in (Status.SUCCEEDED, Status.CANCELLED)


# the whole


def _wrong_leases(view: View, memory: Memory) -> Iterator[str]:
    """At most one process holds the current lease of a task."""
    current = Counter(
        claim.task_id
        for worker in memory.workers
        for claim in worker.hand
        if view.records[claim.task_id].status == Status.RUNNING
        and view.records[claim.task_id].number("lease") == claim.lease
    )
    for task_id, holders in current.items():
        if holders > 1:
            yield f"{holders} hold the current lease of {task_id}"


def _wrong_entries(view: View, memory: Memory) -> Iterator[str]:
    """An entry is its task's own, or a stray that no worker holds."""
    for entry, consumer in view.pending.items():
        if entry not in view.entries:
            yield f"{consumer} has an entry pending that is gone"
    for entry, (task_id, delivered, consumer, _) in view.entries.items():
        record = view.records.get(task_id)
        own = record is not None and record.fields.get("entry_id") == entry
        if not own or record is None or record.status not in (Status.QUEUED, Status.RUNNING):
            if entry not in memory.strays:
                yield f"{task_id} has an entry too many"
            elif delivered and consumer not in NOBODY:
                yield f"a stray entry of {task_id} is pending for {consumer or 'nobody'}"
        elif consumer not in ("", *NOBODY) and _holder(record) != consumer:
            yield f"{consumer} has the entry of {task_id}, which is {record.status} elsewhere"


def _holder(record: Record) -> str | None:
    return record.fields["worker"] if record.status == Status.RUNNING else None


def _wrong_members(view: View) -> Iterator[str]:
    """Each schedule holds exactly the tasks that it serves."""
    there = {i: record for i, record in view.records.items() if record.status}
    scheduled = {
        "retries": (view.retries, {i for i, r in there.items() if r.status == Status.RETRYING}),
        "delays": (view.delays, {i for i, r in there.items() if r.status == Status.SCHEDULED}),
        "expiry": (
            view.expiry,
            {i for i, r in there.items() if r.status in WAITING and "expires_ms" in r.fields},
        ),
    }
    for name, (found, expected) in scheduled.items():
        if found.keys() != expected:
            yield f"the {name} are {sorted(found)}, not {sorted(expected)}"


def _wrong_key(view: View) -> Iterator[str]:
    """The idempotency record and the task that it names agree."""
    keyed = [i for i, record in view.records.items() if "idem_key" in record.fields]
    if len(keyed) > 1:
        yield f"{keyed} share an idempotency key"
    for task_id in keyed:
        status = Status(view.records[task_id].status)
        ended = status in TERMINAL
        state = _IDEMPOTENCY.get(status, "failed") if ended else "processing"
        if view.idempotency.get("task") != task_id or view.idempotency.get("state") != state:
            yield f"{task_id} is {status}, the idempotency record says {view.idempotency}"
        elif view.idempotency_passes is not ended:
            yield f"{task_id} is {status}, its idempotency record has a wrong TTL"


def _wrong_counters(view: View) -> Iterator[str]:
    """What waits or runs is counted exactly; what ended, as often as it ever did."""
    found = Counter(record.status for record in view.records.values())
    requeued = any(record.number("requeues") for record in view.records.values())
    for status in Status:
        counted = int(view.counters.get(status, 0))
        ended_before = requeued and status.terminal and counted > found[status]
        if counted != found[status] and not ended_before:
            yield f"the queue counts {counted} {status}, there are {found[status]}"


# answers


def _wrong_answer(edge: Edge) -> Iterator[str]:
    """What a script says is what it did."""
    before, step, answer, after = edge
    if isinstance(answer, Taken):
        yield from _wrong_claims(before, answer, after)
    elif step.script == "submit":
        yield from _wrong_submitted(before, answer[0])
    elif step.script in ("finish", "release", "renew") and step.lease is not None:
        code = answer[0].code if isinstance(answer[0], Ended) else answer[0]
        yield from _wrong_permission(before, step, code, after)


def _wrong_claims(before: State, taken: Taken, after: State) -> Iterator[str]:
    for claim in taken.claims:
        record = after.view.records[claim.task_id]
        was = before.view.records[claim.task_id]
        if (record.status, record.number("lease")) != (Status.RUNNING, claim.lease):
            yield f"lease {claim.lease} of {claim.task_id} was handed out, not being current"
        if claim.lease <= was.number("lease"):
            yield f"lease {claim.lease} of {claim.task_id} was handed out twice"
        holder = before.view.entries[claim.entry_id]
        if holder.consumer not in ("", *NOBODY, record.fields["worker"]) and not holder.old:
            yield f"{claim.task_id} was taken from {holder.consumer}, which is not silent"


def _wrong_submitted(before: State, answer: Submitted) -> Iterator[str]:
    record = before.view.records.get(answer.task_id)
    there = record is not None and bool(record.status)
    if there is (answer.code is Code.OK):
        yield f"submit answered {answer.code.name}, {answer.task_id} was there: {there}"


def _wrong_permission(before: State, step: Step, code: Code, after: State) -> Iterator[str]:
    """Only the current lease may change anything; with it, everything."""
    assert step.lease is not None
    task_id, lease = step.lease
    record = before.view.records[task_id]
    current = (record.status, record.number("lease")) == (Status.RUNNING, lease)
    if current is not (code in (Code.OK, Code.CANCEL)):
        yield f"lease {lease} is{'' if current else ' not'} current, {step.script}: {code.name}"
    elif not current and before.saved != after.saved and before.view != after.view:
        yield f"{step.script} was refused, and changed something"
    if step.script == "renew" and current and after.view.entries[record.fields["entry_id"]].old:
        yield f"{task_id} was renewed, and its entry is old"
