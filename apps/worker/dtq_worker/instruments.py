"""The measures of this worker for OpenTelemetry, where the handlers' program has set that up."""

from __future__ import annotations

import sys
from typing import Any

from dtq_core.tracing import INSTRUMENT


class Instruments:
    """What measures are recorded with."""

    def __init__(self, meter: Any) -> None:
        """Make them.

        Args:
            meter: of ``opentelemetry.metrics``.
        """
        self._attempts = meter.create_counter(
            "dtq.attempts", unit="{attempt}", description="Attempts that ended."
        )
        self._waited = meter.create_histogram(
            "dtq.start_latency", unit="s", description="From queued until a worker took it."
        )
        self._ran = meter.create_histogram(
            "dtq.run", unit="s", description="How long a handler ran."
        )
        self._took = meter.create_histogram(
            "dtq.redis.call", unit="s", description="Round trips to Redis, by script."
        )
        self._lost = meter.create_counter(
            "dtq.leases_lost", unit="{lease}", description="Leases lost while their handler ran."
        )

    @classmethod
    def found(cls) -> Instruments | None:
        """Return instruments of the provider that was set up; None where none was."""
        api, sdk = (sys.modules.get(f"opentelemetry.{name}") for name in ("metrics", "sdk.metrics"))
        if api is None or sdk is None:
            return None
        provider = api.get_meter_provider()
        return (
            cls(provider.get_meter(INSTRUMENT)) if isinstance(provider, sdk.MeterProvider) else None
        )

    def attempt(self, queue: str, task: str, outcome: str) -> None:
        """Record an attempt that ended."""
        self._attempts.add(1, {**_labels(queue, task), "dtq.outcome": outcome})

    def durations(self, queue: str, task: str, waited_us: int, ran_us: int) -> None:
        """Record how long an attempt had waited, and how long its handler ran."""
        labels = _labels(queue, task)
        self._waited.record(waited_us / 1e6, labels)
        self._ran.record(ran_us / 1e6, labels)

    def call(self, script: str, took_us: int) -> None:
        """Record a round trip."""
        self._took.record(took_us / 1e6, {"dtq.script": script})

    def lease_lost(self) -> None:
        """Record a lost lease."""
        self._lost.add(1)


def _labels(queue: str, task: str) -> dict[str, str]:
    return {"messaging.destination.name": queue, "dtq.task": task}
