"""Tasks: submitting, following, cancelling."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from dtq_api import idempotency
from dtq_api.bodies import decode, read_json
from dtq_api.keyring import Caller
from dtq_api.openapi import BODY_PROBLEMS, answers, body_of
from dtq_api.presence import while_there
from dtq_api.problems import Kind, Problem, of_error
from dtq_api.services import (
    MAX_OVERHEAD_BYTES,
    Follower,
    Operator,
    Reader,
    Services,
    Submitter,
    Used,
    answer,
    small_body,
)
from dtq_api.shapes import (
    MAX_PAGE,
    Attempts,
    BatchAnswer,
    BatchRequest,
    Cancelled,
    ReasonRequest,
    SubmittedTask,
    TaskEvents,
    TaskOutcome,
    TaskPage,
    TaskRequest,
    TaskWithPayload,
    short_task,
)
from dtq_api.submitting import Accepted, carrying, item_of, outcome_of, submission_of, submit_all
from dtq_client.operating.cancelling import cancel as cancel_task
from dtq_client.queries.events import events_of
from dtq_client.queries.tasks import Wanted, find_tasks
from dtq_core import reads
from dtq_core.errors import InputError, ResultExpiredError, TaskNotFoundError
from dtq_core.limits import check_name, check_task_id
from dtq_core.record import TaskInfo
from dtq_core.states import Status

router = APIRouter(prefix="/v1/tasks", tags=["tasks"])

MAX_WAIT_S = 60.0
_EXAMPLE = {"name": "send_welcome", "args": [42], "kwargs": {"lang": "de"}, "queue": "mail"}
_SUBMITTED = {
    "id": "019ae0c8d3c67d0f9a4b52c9a7d10000",
    "name": "send_welcome",
    "queue": "mail",
    "band": "normal",
    "status": "QUEUED",
}

TaskId = Annotated[str, Path(description="The id of a task: 32 hexadecimal digits.")]


@router.post(
    "",
    status_code=201,
    responses=answers(
        SubmittedTask,
        *BODY_PROBLEMS,
        Kind.INVALID_KEY,
        Kind.IN_PROGRESS,
        Kind.KEY_CONFLICT,
        Kind.OUTCOME_UNKNOWN,
        status=201,
        example=_SUBMITTED,
        others={200: (TaskOutcome, "The task of this idempotency key has ended: its outcome.")},
    ),
    openapi_extra=body_of(TaskRequest, _EXAMPLE, {"name": "nightly_report", "delay": 3600})
    | {"parameters": [idempotency.PARAMETER]},
)
async def submit(request: Request, caller: Submitter, services: Used) -> Response:
    """Submit a task. With an `Idempotency-Key`, a request that is sent again is the same task."""
    key = idempotency.key_of(request)
    settings = services.settings
    limit_bytes = settings.max_payload_bytes + MAX_OVERHEAD_BYTES
    asked = await read_json(request, TaskRequest, limit_bytes, settings.api_read_timeout)
    if asked.idempotency_key is not None:
        raise Problem(Kind.INVALID, f"send the idempotency key in the header {idempotency.HEADER}")
    asked = idempotency.under(asked, key)
    submissions = carrying(request.headers, [submission_of(services.client, caller, asked)])
    (found,) = await submit_all(services.client, [asked], submissions)
    if isinstance(found, Problem):
        raise found
    if found.outcome is not None:
        return answer(found.outcome, 200, {"Idempotent-Replayed": "true"})
    assert found.task is not None
    location = f"{request.scope.get('root_path', '')}{router.prefix}/{found.task.id}"
    return answer(found.task, 201, {"Location": location})


@router.post(
    "/batch",
    responses=answers(BatchAnswer, *BODY_PROBLEMS, Kind.INVALID_KEY),
    openapi_extra=body_of(
        BatchRequest, {"tasks": [_EXAMPLE, {"name": "send_welcome", "idempotency_key": "u43"}]}
    ),
)
async def submit_batch(request: Request, caller: Submitter, services: Used) -> Response:
    """Submit up to 1,000 tasks. Each item is answered by itself, as a request of its own."""
    idempotency.refuse_key(request)
    settings = services.settings
    limit_bytes = settings.api_max_batch_bytes
    batch = await read_json(request, BatchRequest, limit_bytes, settings.api_read_timeout)
    found: list[Accepted | Problem | None] = [None] * len(batch.tasks)
    sent: dict[int, TaskRequest] = {}
    submissions = []
    for index, text in enumerate(batch.tasks):
        try:
            asked = decode(text, TaskRequest)
            submissions.append(submission_of(services.client, caller, asked))
            sent[index] = asked
        except Problem as problem:
            found[index] = problem
        except InputError as error:
            found[index] = of_error(error)
    submissions = carrying(request.headers, submissions)
    became = await submit_all(services.client, list(sent.values()), submissions)
    for index, one in zip(sent, became, strict=True):
        found[index] = one
    return answer(BatchAnswer([item_of(one) for one in found if one is not None]))


@router.get("", responses=answers(TaskPage, Kind.INVALID))
async def list_tasks(
    caller: Reader,
    services: Used,
    status: Annotated[list[Status] | None, Query(description="Only in one of these.")] = None,
    queue: Annotated[str | None, Query(description="Only in this queue.")] = None,
    name: Annotated[str | None, Query(description="Only of this name.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
    cursor: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> Response:
    """List tasks, the newest first. Long texts are cut, payloads and results left out."""
    queue = caller.queue_to_list(None if queue is None else check_name("queue name", queue))
    if name is not None:
        check_name("task name", name)
    if cursor is not None:
        check_task_id(cursor)
    wanted = Wanted(status or (), queue, name, cursor)
    found = await run_in_threadpool(find_tasks, services.store, wanted, limit)
    return answer(
        TaskPage(
            tasks=[short_task(info) for info in found.tasks],
            next=found.tasks[-1].id if found.more else None,
            complete=found.complete,
            unseen_before=found.unseen_before,
        )
    )


@router.get("/{task_id}", responses=answers(TaskWithPayload, Kind.TASK_NOT_FOUND))
async def get_task(task_id: TaskId, caller: Follower, services: Used) -> Response:
    """Return a task and its arguments."""
    info = await _task(services, caller, task_id)
    keys = services.client.store.keys_of(task_id)
    payload = await services.client.store.read(reads.payload(keys, task_id))
    return answer(TaskWithPayload(task=info, args=payload.args, kwargs=payload.kwargs))


@router.get(
    "/{task_id}/result",
    responses=answers(
        TaskOutcome,
        Kind.TASK_NOT_FOUND,
        Kind.RESULT_EXPIRED,
        Kind.INVALID,
        others={202: (TaskOutcome, "It has not ended.")},
    ),
)
async def get_result(
    request: Request,
    task_id: TaskId,
    caller: Follower,
    services: Used,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT_S, description="Seconds to wait.")] = 0,
) -> Response:
    """Return what came of a task, once it has ended; 202 while it has not."""
    await _task(services, caller, task_id)
    found = await while_there(request, services.client.outcome(task_id, wait))
    outcome = outcome_of(found)
    if not found.info.status.terminal:
        return answer(outcome, 202, {"Retry-After": "1"})
    if found.info.status is Status.SUCCEEDED and found.result is None:
        raise ResultExpiredError(task_id)
    return answer(outcome)


@router.get("/{task_id}/attempts", responses=answers(Attempts, Kind.TASK_NOT_FOUND))
async def get_attempts(task_id: TaskId, caller: Follower, services: Used) -> Response:
    """Return the ended attempts of a task, oldest first, with their errors."""
    await _task(services, caller, task_id)
    return answer(Attempts(await services.client.attempts(task_id)))


@router.get("/{task_id}/events", responses=answers(TaskEvents, Kind.TASK_NOT_FOUND))
async def get_events(task_id: TaskId, caller: Follower, services: Used) -> Response:
    """Return the events of a task that are still kept, oldest first."""
    info = await _task(services, caller, task_id)
    events, complete = await run_in_threadpool(events_of, services.store, info)
    return answer(TaskEvents(events, complete))


@router.post(
    "/{task_id}/cancel",
    responses=answers(Cancelled, *BODY_PROBLEMS, Kind.TASK_NOT_FOUND),
    openapi_extra=body_of(ReasonRequest, {"reason": "ordered twice"}),
)
async def cancel(request: Request, task_id: TaskId, caller: Operator, services: Used) -> Response:
    """Cancel a task: at once where it waits, by asking its worker where it runs."""
    asked = await small_body(request, ReasonRequest)
    await _task(services, caller, task_id)
    done = await run_in_threadpool(cancel_task, services.store, task_id, caller.who, asked.reason)
    return answer(Cancelled(task_id, done))


async def _task(services: Services, caller: Caller, task_id: str) -> TaskInfo:
    """Return a task; one that the caller does not reach is none."""
    try:
        info = await services.client.get(task_id)
    except InputError:
        raise TaskNotFoundError(task_id) from None
    if not caller.reaches(info.queue):
        raise TaskNotFoundError(task_id)
    return info
