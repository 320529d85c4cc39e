"""All that is told to a system that collects metrics: a few round trips, however many tasks."""

from __future__ import annotations

from typing import Any, NamedTuple

from dtq_client.queries.counters import dead_letters, unserved
from dtq_client.queries.measures import measured
from dtq_client.queries.rates import Sample
from dtq_client.queries.sampling import take_sample
from dtq_core.clock import mono_s
from dtq_core.errors import RedisDeniedError
from dtq_core.measures import Measures
from dtq_core.reads import Read
from dtq_core.store import Store


class ScriptTime(NamedTuple):
    """What the server has spent on scripts since it was started.

    Attributes:
        calls: how many there were, of all programs.
        seconds: how long they took.
    """

    calls: int
    seconds: float


class Scrape(NamedTuple):
    """A deployment at a moment.

    Attributes:
        sample: queues, workers, schedulers, the server.
        dead_letters: entries of the dead-letter streams.
        unserved: queues in which tasks wait, and that no live worker serves.
        measures: what workers have measured.
        round_trip_s: how long the server took to answer a PING.
        scripts: what it spent on scripts; None where it may not be asked.
    """

    sample: Sample
    dead_letters: int
    unserved: frozenset[str]
    measures: Measures
    round_trip_s: float
    scripts: ScriptTime | None


def scrape(store: Store) -> Scrape:
    """Look at a deployment.

    Raises:
        RedisError: if the server cannot say.
    """
    sample = take_sample(store)
    return Scrape(
        sample=sample,
        dead_letters=dead_letters(store),
        unserved=unserved(sample.queues, sample.workers),
        measures=measured(store),
        round_trip_s=_round_trip_s(store),
        scripts=_script_time(store),
    )


def _round_trip_s(store: Store) -> float:
    begin_s = mono_s()
    store.read(Read([("PING",)], lambda _: None))
    return mono_s() - begin_s


def _script_time(store: Store) -> ScriptTime | None:
    try:
        return store.read(Read([("INFO", "commandstats")], lambda replies: _sum(replies[0])))
    except RedisDeniedError:
        return None


def _sum(info: dict[str, Any]) -> ScriptTime:
    found = [info[name] for name in ("cmdstat_evalsha", "cmdstat_eval") if name in info]
    return ScriptTime(
        sum(int(one["calls"]) for one in found), sum(float(one["usec"]) for one in found) / 1e6
    )
