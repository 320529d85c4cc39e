"""Traces over real processes: from who submits, through the queue, to each attempt."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from cli.terminal import Terminal, eventually, stop
from dtq_core.record import Options, SubmissionForm, decode_spec
from dtq_core.settings import Settings
from dtq_core.tracing import is_active, trace_id, with_context

SETUP = """
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor


def set_up():
    spans = open("spans.jsonl", "a", buffering=1)
    exporter = ConsoleSpanExporter(out=spans, formatter=lambda span: span.to_json(None) + "\\n")
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    measures = open("measures.jsonl", "a", buffering=1)
    out = ConsoleMetricExporter(out=measures, formatter=lambda data: data.to_json(None) + "\\n")
    reader = PeriodicExportingMetricReader(out, export_interval_millis=200)
    metrics.set_meter_provider(MeterProvider([reader]))
"""
TRACED = """
import structlog
from opentelemetry import trace

from dtq import Context, fixed, task
from setup import set_up

set_up()


@task
async def whole(n: int) -> None:
    context = trace.get_current_span().get_span_context()
    structlog.get_logger().warning("inside", current=context.trace_id)


@task
def in_thread(n: int) -> None:
    with trace.get_tracer("own").start_as_current_span("own work"):
        pass


@task(retry=fixed(0.05), max_attempts=2)
async def flaky(n: int, ctx: Context) -> None:
    if ctx.attempt == 1:
        raise ValueError("once")
"""
SUBMITTER = """
import asyncio
import sys

from opentelemetry import trace

from dtq import AsyncClient, Client
from setup import set_up

set_up()
tracer = trace.get_tracer("shop")


async def asynchronously() -> None:
    async with AsyncClient() as client:
        await client.submit_by_name("in_thread", [4])


with tracer.start_as_current_span("checkout"), Client() as client:
    client.submit_by_name("whole", [1])
    client.submit_by_name("flaky", [2])
    asyncio.run(asynchronously())
with Client() as client:
    client.submit_by_name("whole", [3])
"""


@pytest.fixture
def traced(terminal: Terminal) -> Terminal:
    for name, text in (("setup", SETUP), ("traced", TRACED), ("submitter", SUBMITTER)):
        (terminal.folder / f"{name}.py").write_text(text)
    return terminal


def spans_of(terminal: Terminal) -> list[dict[str, Any]]:
    path = terminal.folder / "spans.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def finished(terminal: Terminal, count: int) -> list[dict[str, Any]]:
    """The spans, once so many runs have ended."""

    def runs() -> list[dict[str, Any]]:
        return [span for span in spans_of(terminal) if span["name"].startswith("run ")]

    eventually("the attempts", lambda: len(runs()) >= count)
    return spans_of(terminal)


def run_submitter(terminal: Terminal) -> None:
    subprocess.run(
        [sys.executable, "submitter.py"], cwd=terminal.folder, env=terminal.environ, check=True
    )


def id_of(span: dict[str, Any]) -> str:
    return str(span["context"]["span_id"])


def test_a_trace_leads_from_the_submitter_through_the_queue_to_each_attempt(
    traced: Terminal,
) -> None:
    worker = traced.start("worker", "traced", log_format="json", log_level="warning")
    run_submitter(traced)
    spans = finished(traced, 5)
    said = [json.loads(line) for line in stop(worker).err.splitlines()]

    (checkout,) = [span for span in spans if span["name"] == "checkout"]
    trace = checkout["context"]["trace_id"]
    inside = [span for span in spans if span["context"]["trace_id"] == trace]
    submits = {s["name"]: s for s in inside if s["name"].startswith("submit ")}
    assert set(submits) == {"submit whole", "submit flaky", "submit in_thread"}
    assert {span["parent_id"] for span in submits.values()} == {id_of(checkout)}
    assert {span["kind"] for span in submits.values()} == {"SpanKind.PRODUCER"}
    for name, attempts in (("whole", 1), ("in_thread", 1), ("flaky", 2)):
        submit = submits[f"submit {name}"]
        children = [span for span in inside if span["parent_id"] == id_of(submit)]
        runs = [span for span in children if span["name"] == f"run {name}"]
        waits = [span for span in children if span["name"] == "wait default"]
        assert (len(runs), len(waits)) == (attempts, attempts)
        for span in runs:
            assert span["kind"] == "SpanKind.CONSUMER"
            assert span["attributes"]["dtq.task"] == name
            assert span["attributes"]["messaging.destination.name"] == "default"
    (own,) = [span for span in inside if span["name"] == "own work"]
    (in_thread,) = [span for span in inside if span["name"] == "run in_thread"]
    assert own["parent_id"] == id_of(in_thread)

    alone = [s for s in spans if s["name"] == "submit whole" and s["context"]["trace_id"] != trace]
    assert [span["parent_id"] for span in alone] == [None]
    logged = [line for line in said if line["event"] == "inside"]
    assert {line["trace_id"] for line in logged} == {f"{line['current']:032x}" for line in logged}
    assert trace.removeprefix("0x") in {line["trace_id"] for line in logged}


def test_a_retry_has_a_link_to_the_attempt_before_it(traced: Terminal) -> None:
    worker = traced.start("worker", "traced", log_level="error")
    run_submitter(traced)
    spans = finished(traced, 5)
    stop(worker)
    first, second = sorted(
        (span for span in spans if span["name"] == "run flaky"),
        key=lambda span: span["attributes"]["dtq.attempt"],
    )
    assert first["links"] == []
    assert [link["context"]["span_id"] for link in second["links"]] == [id_of(first)]
    assert first["status"]["status_code"] == "ERROR"
    assert first["status"]["description"] == "ValueError: once"
    assert [event["name"] for event in first["events"]] == ["exception"]
    assert second["status"]["status_code"] == "UNSET"


def test_measures_go_to_the_meter_of_the_program(traced: Terminal) -> None:
    worker = traced.start("worker", "traced", log_level="error")
    run_submitter(traced)
    finished(traced, 5)
    path = traced.folder / "measures.jsonl"

    def told() -> bool:
        last = path.read_text() if path.exists() else ""
        names = ("dtq.attempts", "dtq.start_latency", "dtq.run", "dtq.redis.call")
        return all(f'"name": "{name}"' in last for name in names) and '"retried"' in last

    eventually("the measures", told)
    stop(worker)


def test_a_program_that_has_not_set_up_opentelemetry_makes_no_spans(terminal: Terminal) -> None:
    assert not is_active()
    task_id = terminal.submit("add", 1, 2)
    keys = terminal.client.store.keys_of(task_id)
    spec = decode_spec(terminal.raw.hget(keys.task(task_id), "spec"))
    assert (spec.name, spec.traceparent, spec.tracestate) == ("add", None, None)


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("parent", "state", "kept"),
    [
        (PARENT, "", (PARENT, None)),
        (PARENT, "vendor=1", (PARENT, "vendor=1")),
        (PARENT, "x" * 600, (PARENT, None)),
        (PARENT, "é", (PARENT, None)),
        (PARENT.upper(), "vendor=1", (None, None)),
        (f"{PARENT}\n", "", (None, None)),
        ("rubbish", "vendor=1", (None, None)),
        ("", "", (None, None)),
    ],
)
def test_what_is_no_context_is_not_carried(
    parent: str, state: str, kept: tuple[str | None, str | None]
) -> None:
    form = SubmissionForm("name", Options(), Settings())
    made = with_context(form.submission("0" * 32, b"[[],{}]"), parent, state)
    spec = decode_spec(made.spec)
    assert (spec.traceparent, spec.tracestate) == kept
    assert trace_id(spec.traceparent) == (kept[0].split("-")[1] if kept[0] else None)
