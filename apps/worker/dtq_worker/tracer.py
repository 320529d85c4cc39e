"""Spans of attempts, where the handlers' program has set up OpenTelemetry.

For each attempt two spans, both children of the submission's: ``wait QUEUE``, the time in the queue
by the clock of Redis, and ``run TASK``, in which the handler runs. A retry has a link to the
attempt before it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import msgspec

from dtq_core import reads
from dtq_core.errors import DtqError
from dtq_core.logs import bind_attempt
from dtq_core.outcome import Cancelled, Failed, GivenBack, Outcome
from dtq_core.record import Claim, Spec
from dtq_core.store import AsyncStore
from dtq_core.tracing import INSTRUMENT, context_of, current_traceparent, link_to, trace_id


class Tracer:
    """Runs attempts within spans."""

    def __init__(self, store: AsyncStore) -> None:
        """Set up.

        Args:
            store: where the attempt before a retry is looked up.
        """
        self._store = store

    async def run(
        self, claim: Claim, spec: Spec, run: Callable[[], Coroutine[Any, Any, Outcome]]
    ) -> Outcome:
        """Run an attempt within its span.

        Args:
            claim: the attempt.
            spec: of its task.
            run: runs the handler.
        """
        from opentelemetry import trace

        tracer, parent = trace.get_tracer(INSTRUMENT), context_of(spec)
        attributes = _attributes(claim, spec)
        waiting = tracer.start_span(
            f"wait {claim.queue}", parent, attributes=attributes, start_time=_ns(claim.queued_ms)
        )
        waiting.end(_ns(claim.started_ms))
        with tracer.start_as_current_span(
            f"run {spec.name}",
            parent,
            trace.SpanKind.CONSUMER,
            attributes,
            links=link_to(await self._attempt_before(claim)),
        ) as span:
            traceparent = current_traceparent()
            bind_attempt(attempt_fields(claim, traceparent))
            return _told(span, await run(), traceparent)

    async def _attempt_before(self, claim: Claim) -> str | None:
        """The context of the attempt before a retry, where that had one."""
        if claim.attempt == 1:
            return None
        keys = self._store.keys_of(claim.task_id)
        try:
            found = await self._store.read(reads.attempts(keys, claim.task_id), retry_s=0)
        except DtqError:
            return None
        error = found[-1].error if found else None
        traceparent = error.get("traceparent") if error else None
        return traceparent if isinstance(traceparent, str) else None


def attempt_fields(claim: Claim, traceparent: str | None) -> dict[str, Any]:
    """Return what lines of a handler's log name."""
    fields = {"task_id": claim.task_id, "attempt": claim.attempt}
    if trace := trace_id(traceparent):
        fields["trace_id"] = trace
    return fields


def _attributes(claim: Claim, spec: Spec) -> dict[str, Any]:
    return {
        "messaging.system": "dtq",
        "messaging.operation.type": "process",
        "messaging.operation.name": "run",
        "messaging.destination.name": claim.queue,
        "messaging.message.id": claim.task_id,
        "dtq.task": spec.name,
        "dtq.attempt": claim.attempt,
        "dtq.max_attempts": claim.max_attempts,
    }


def _told(span: Any, outcome: Outcome, traceparent: str) -> Outcome:
    """Tell a span what its attempt came to; a failure keeps the context, for the retry's link."""
    from opentelemetry.trace import Status, StatusCode

    match outcome:
        case Failed(error):
            span.add_event(
                "exception",
                {
                    "exception.type": error.type,
                    "exception.message": error.message,
                    "exception.stacktrace": error.traceback,
                },
            )
            span.set_status(Status(StatusCode.ERROR, error.reason))
            kept = msgspec.structs.replace(error, traceparent=traceparent)
            return replace(outcome, error=kept)
        case Cancelled(reason) | GivenBack(reason):
            span.set_attribute("dtq.ended_early", reason)
    return outcome


def _ns(ms: int) -> int:
    return ms * 1_000_000
