"""Trace contexts (W3C Trace Context), carried with tasks from who submits to who runs them.

Spans are made where the program has set up OpenTelemetry, and nowhere else: then a submission costs
one look into a dictionary more. A context that came with a request is carried either way.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import msgspec

from dtq_core.record import Spec, Submission, decode_spec, encode_spec

if TYPE_CHECKING:
    from opentelemetry.context import Context

INSTRUMENT = "dtq"
"""Under this name spans and measures are made."""

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_MAX_TRACESTATE = 512
"""What a carrier has to take at least, by the standard; what is longer is left out."""


def is_active() -> bool:
    """Tell whether this program makes spans."""
    api = sys.modules.get("opentelemetry.trace")
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)


def trace_id(traceparent: str | None) -> str | None:
    """Return the id of the trace that a context belongs to; None where there is none."""
    found = _TRACEPARENT.fullmatch(traceparent or "")
    return found[1] if found else None


def with_context(submission: Submission, traceparent: str, tracestate: str = "") -> Submission:
    """Return a submission that carries a context; one that is malformed is not carried."""
    if trace_id(traceparent) is None:
        return submission
    if len(tracestate) > _MAX_TRACESTATE or not tracestate.isascii():
        tracestate = ""
    spec = msgspec.structs.replace(
        decode_spec(submission.spec), traceparent=traceparent, tracestate=tracestate or None
    )
    return submission._replace(spec=encode_spec(spec))


def context_of(spec: Spec) -> Context | None:
    """Return the carried context as a parent of spans; None where there is none."""
    return _extracted(spec.traceparent, spec.tracestate)


def link_to(traceparent: str | None) -> list[Any]:
    """Return a link to a span by its context; none where there is none."""
    from opentelemetry import trace

    context = _extracted(traceparent, None)
    return (
        [] if context is None else [trace.Link(trace.get_current_span(context).get_span_context())]
    )


def current_traceparent() -> str:
    """Return the context of the span that is current, as it is carried."""
    return _injected().get("traceparent", "")


def submitting(batch: Sequence[Submission]) -> AbstractContextManager[Sequence[Submission]]:
    """Make a span of sending some submissions, which carry its context; or none.

    Args:
        batch: of one task and queue, or of several.
    """
    return _producing(batch) if is_active() else nullcontext(batch)


@contextmanager
def _producing(batch: Sequence[Submission]) -> Iterator[Sequence[Submission]]:
    from opentelemetry import trace

    first = batch[0]
    spec = decode_spec(first.spec)
    inside = trace.get_current_span().get_span_context().is_valid
    attributes: dict[str, Any] = {
        "messaging.system": "dtq",
        "messaging.operation.type": "send",
        "messaging.operation.name": "submit",
        "messaging.destination.name": first.queue,
        "dtq.task": spec.name,
    }
    if len(batch) == 1:
        attributes["messaging.message.id"] = first.task_id
    else:
        attributes["messaging.batch.message_count"] = len(batch)
    with trace.get_tracer(INSTRUMENT).start_as_current_span(
        f"submit {spec.name}",
        context=None if inside else context_of(spec),
        kind=trace.SpanKind.PRODUCER,
        attributes=attributes,
    ):
        carried = _injected()
        yield [with_context(one, **carried) for one in batch] if carried else batch


def _extracted(traceparent: str | None, tracestate: str | None) -> Context | None:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if trace_id(traceparent) is None:
        return None
    carrier = {"traceparent": traceparent or "", "tracestate": tracestate or ""}
    return TraceContextTextMapPropagator().extract(carrier)


def _injected() -> dict[str, str]:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier
