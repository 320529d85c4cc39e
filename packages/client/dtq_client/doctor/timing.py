"""How long Redis takes to answer, and how its clock differs from this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

from dtq_client.doctor.finding import Finding, Verdict
from dtq_core import reads
from dtq_core.clock import mono_s, wall_ms
from dtq_core.errors import RedisDeniedError, RedisError, RedisFullError, RedisUnavailableError
from dtq_core.reads import Read
from dtq_core.store import Store

_TIMES = 50
_SLOW_MS = 5.0
_SLOW_SCRIPT_MS = 10.0
_OFFSET_S = 2.0


def examine_timing(store: Store) -> Iterator[Finding]:
    """Measure a server; this writes at most a key that nobody reads.

    Raises:
        RedisUnavailableError: if the server cannot be reached.
    """
    yield _clock(store)
    yield _latency(store)
    yield _scripts(store)


def _clock(store: Store) -> Finding:
    begin_ms = wall_ms()
    theirs_ms = store.read(reads.now_ms())
    offset_s = (theirs_ms - (begin_ms + wall_ms()) / 2) / 1000
    far = abs(offset_s) > _OFFSET_S
    return Finding(
        "clock",
        Verdict.WARNING if far else Verdict.OK,
        f"{abs(offset_s):,.2f} s {'ahead of' if offset_s > 0 else 'behind'} this machine",
        "Tasks go by the clock of Redis: what is due at a time of day comes when that one says so.",
        "Set both clocks by the network: chronyc tracking" if far else None,
    )


def _latency(store: Store) -> Finding:
    took_ms = _took_ms(lambda: store.read(Read([("PING",)], lambda _: None)))
    slow = median(took_ms) > _SLOW_MS
    return Finding(
        "latency",
        Verdict.WARNING if slow else Verdict.OK,
        f"{_figures(took_ms)} for a PING",
        "Each submission, and each claim of an idle worker, takes at least that long.",
        "Run workers near their Redis; look for slow commands: redis-cli SLOWLOG GET 10"
        if slow
        else None,
    )


def _scripts(store: Store) -> Finding:
    why = "Every step of a task is one script; while scripts are refused, nothing moves."
    try:
        took_ms = _took_ms(lambda: store.run(store.calls[0].probe(), retry_s=0))
    except RedisUnavailableError:
        raise
    except RedisError as error:
        return Finding("scripts", Verdict.DANGER, str(error), why, _remedy(error))
    slow = median(took_ms) > _SLOW_SCRIPT_MS
    return Finding(
        "scripts",
        Verdict.WARNING if slow else Verdict.OK,
        f"{_figures(took_ms)} for a script that writes",
        why,
        "Look for what holds the server up: redis-cli SLOWLOG GET 10" if slow else None,
    )


def _remedy(error: RedisError) -> str:
    if isinstance(error, RedisFullError):
        return "redis-cli CONFIG SET maxmemory BYTES, or drain the queues"
    if isinstance(error, RedisDeniedError):
        return "Give the user its rights: see the rule in docs/security.md"
    return "Look at the log of the server."


def _took_ms(work: Callable[[], object]) -> list[float]:
    work()  # the first one may open a connection, or load a script
    took = []
    for _ in range(_TIMES):
        begin_s = mono_s()
        work()
        took.append((mono_s() - begin_s) * 1000)
    return sorted(took)


def _figures(took_ms: list[float]) -> str:
    return f"{median(took_ms):.2g} ms, at most {took_ms[-1]:.2g} ms,"
