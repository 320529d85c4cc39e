"""Submissions over HTTP: one task for one request, whatever is sent again."""

from __future__ import annotations

from typing import NamedTuple

from starlette.datastructures import Headers

from dtq_api.keyring import Caller
from dtq_api.problems import Kind, Problem, of_error
from dtq_api.shapes import BatchItem, SubmittedTask, TaskOutcome, TaskRequest
from dtq_client import AsyncClient
from dtq_core import codec
from dtq_core.calls import Submitted
from dtq_core.errors import CorruptDataError, DtqError, EncodingError, RedisError, TaskNotFoundError
from dtq_core.reads import Outcome
from dtq_core.record import KeyUse, Submission
from dtq_core.scripts import Code
from dtq_core.states import Status
from dtq_core.tracing import with_context


class Accepted(NamedTuple):
    """The answer to a submission that was not refused: a new task, or one that has ended.

    Attributes:
        task: the new one.
        outcome: of the one that this idempotency key belongs to, once that has ended.
    """

    task: SubmittedTask | None = None
    outcome: TaskOutcome | None = None


def submission_of(client: AsyncClient, caller: Caller, asked: TaskRequest) -> Submission:
    """Check and encode what is asked for.

    Raises:
        Problem: if the caller may not do that.
        InputError: if it is refused.
    """
    caller.require_queue(asked.queue)
    key_use = KeyUse(caller.key_owner, whole=True)
    return client.requests.by_name(asked.name, asked.args, asked.kwargs, asked, key_use)


def carrying(headers: Headers, submissions: list[Submission]) -> list[Submission]:
    """Have submissions carry the trace context of their request, where it has one.

    As W3C Trace Context has it: ``traceparent`` and ``tracestate``. A malformed one is left out.
    """
    parent = headers.get("traceparent")
    if parent is None:
        return submissions
    state = headers.get("tracestate", "")
    return [with_context(one, parent, state) for one in submissions]


async def submit_all(
    client: AsyncClient, asked: list[TaskRequest], submissions: list[Submission]
) -> list[Accepted | Problem]:
    """Submit tasks, and say for each what became of it."""
    answers: dict[str, Submitted | RedisError] = {}
    for durability in {request.durability for request in asked}:
        pairs = zip(asked, submissions, strict=True)
        group = [one for request, one in pairs if request.durability == durability]
        ids = [one.task_id for one in group]
        try:
            answers.update(zip(ids, await client.submit_each(group, durability), strict=True))
        except RedisError as error:
            answers.update(dict.fromkeys(ids, error))
    return [
        await _one(client, request, answers[submission.task_id])
        for request, submission in zip(asked, submissions, strict=True)
    ]


async def _one(
    client: AsyncClient, asked: TaskRequest, found: Submitted | RedisError
) -> Accepted | Problem:
    try:
        if isinstance(found, RedisError):
            raise found
        if found.code in {Code.OK, Code.AGAIN}:
            return Accepted(task=_submitted(asked, found))
        return await _taken(client, found)
    except Problem as problem:
        return problem
    except DtqError as error:
        return of_error(error)


def _submitted(asked: TaskRequest, found: Submitted) -> SubmittedTask:
    return SubmittedTask(
        id=found.task_id,
        name=asked.name,
        queue=asked.queue,
        band=asked.band,
        status=Status(found.status),
    )


async def _taken(client: AsyncClient, found: Submitted) -> Accepted:
    """Answer for the task that the key belongs to."""
    owner = found.task_id
    if found.code is Code.CONFLICT:
        detail = f"it was used for task {owner}, with another name, arguments or options"
        raise Problem(Kind.KEY_CONFLICT, detail, task_id=owner)
    if found.code is Code.CORRUPT:
        raise CorruptDataError(f"a key of task {owner} or of its queue is not dtq's")
    try:
        outcome = await client.outcome(owner, 0)
    except TaskNotFoundError:  # its time ended just now, and the key's with it
        raise Problem(Kind.UNAVAILABLE, "the task of this key has just been removed") from None
    if not outcome.info.status.terminal:
        status = str(outcome.info.status)
        detail = f"task {owner} is {status}; ask again for its outcome"
        raise Problem(Kind.IN_PROGRESS, detail, task_id=owner, task_status=status)
    return Accepted(outcome=outcome_of(outcome))


def outcome_of(found: Outcome) -> TaskOutcome:
    """Return what came of a task; a result that cannot be read is as good as none."""
    if found.result is None or found.info.status is not Status.SUCCEEDED:
        return TaskOutcome(task=found.info)
    try:
        result = codec.decode(found.result, "result")
    except EncodingError:
        return TaskOutcome(task=found.info)
    return TaskOutcome(task=found.info, result=result, result_kept=True)


def item_of(found: Accepted | Problem) -> BatchItem:
    """Return what became of an item of a batch."""
    if isinstance(found, Problem):
        return BatchItem(status=int(found.kind.status), problem=found.document())
    if found.outcome is not None:
        return BatchItem(status=200, outcome=found.outcome)
    return BatchItem(status=201, task=found.task)
