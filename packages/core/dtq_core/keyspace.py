"""Spells every key, and tells which partition a task belongs to.

A partition is one complete set of keys behind one prefix. One partition has the plain prefix
(``dtq``); of several, each has braces (``dtq:{p0}``), which keep it in one slot of a Redis Cluster.
``lua/lib/keys.lua`` spells the same keys on the other side; a test compares the two.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass
from functools import cached_property

import uuid_utils

from dtq_core.errors import TaskNotFoundError
from dtq_core.limits import Band, check_count, check_name, check_task_id

GROUP = "workers"
"""The consumer group of every stream."""
OVERDUE = "overdue"
"""The consumer that holds entries no process works on."""
SUSPECTS = "suspects"
"""The consumer that holds entries of tasks which are to run alone."""

_PARTITION_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Keyspace:
    """The keys of one partition."""

    prefix: str
    index: int = 0

    @property
    def retry_schedule(self) -> str:
        """Task id → due ms, of tasks that are ``RETRYING``."""
        return f"{self.prefix}:retry:schedule"

    @property
    def delay_schedule(self) -> str:
        """Task id → due ms, of tasks that are ``SCHEDULED``."""
        return f"{self.prefix}:delay:schedule"

    @property
    def due(self) -> str:
        """The channel that tells the scheduler of a task that is due before all others."""
        return f"{self.prefix}:due"

    @property
    def expiry(self) -> str:
        """Task id → expiry ms, of waiting tasks that have a TTL."""
        return f"{self.prefix}:expiry"

    @property
    def events(self) -> str:
        """The stream of lifecycle events."""
        return f"{self.prefix}:events"

    @property
    def dlq(self) -> str:
        """The stream of dead-lettered tasks."""
        return f"{self.prefix}:dlq"

    @property
    def mark(self) -> str:
        """What is written behind a submission that is to be confirmed; its value means nothing."""
        return f"{self.prefix}:mark"

    @property
    def queues(self) -> str:
        """The hash of known queues."""
        return f"{self.prefix}:queues"

    @property
    def audit(self) -> str:
        """The stream of what operators did."""
        return f"{self.prefix}:audit"

    @property
    def audit_head(self) -> str:
        """Number and hash of the newest entry there."""
        return f"{self.prefix}:audit:head"

    @property
    def cron(self) -> str:
        """The hash of recurring schedules: name → definition."""
        return f"{self.prefix}:cron"

    @property
    def cron_schedule(self) -> str:
        """Name of a recurring schedule → its next slot, ms."""
        return f"{self.prefix}:cron:schedule"

    @property
    def cron_state(self) -> str:
        """What happened to recurring schedules: last slot, its task, since when one is paused."""
        return f"{self.prefix}:cron:state"

    @property
    def api_keys(self) -> str:
        """API keys of the HTTP API, in the first partition: name → JSON."""
        return f"{self.prefix}:apikeys"

    @property
    def measures(self) -> str:
        """What workers measured, in the first partition: see :mod:`dtq_core.measures`."""
        return f"{self.prefix}:measures"

    @property
    def workers(self) -> str:
        """Worker id → last heartbeat ms."""
        return f"{self.prefix}:workers"

    @property
    def leader(self) -> str:
        """The lease of the leading scheduler."""
        return f"{self.prefix}:leader:scheduler"

    def task(self, task_id: str) -> str:
        """The record of a task."""
        return f"{self.prefix}:task:{task_id}"

    def result(self, task_id: str) -> str:
        """The result of a task."""
        return f"{self.prefix}:result:{task_id}"

    def attempts(self, task_id: str) -> str:
        """The ended attempts of a task."""
        return f"{self.prefix}:attempts:{task_id}"

    def done(self, task_id: str) -> str:
        """The channel on which the end of a watched task is announced."""
        return f"{self.prefix}:done:{task_id}"

    def operation(self, task_id: str, name: str) -> str:
        """The record of an operation inside a handler."""
        return f"{self.prefix}:op:{task_id}:{name}"

    def stream(self, queue: str, band: str) -> str:
        """The stream of a band."""
        return f"{self.prefix}:stream:{queue}:{band}"

    def wake(self, queue: str) -> str:
        """The wake-up tokens of a queue."""
        return f"{self.prefix}:wake:{queue}"

    def stats(self, queue: str) -> str:
        """The counters of a queue."""
        return f"{self.prefix}:stats:{queue}"

    def worker(self, worker: str) -> str:
        """What a live worker says of itself."""
        return f"{self.prefix}:worker:{worker}"

    def idempotency(self, key: str) -> str:
        """The record of an idempotency key."""
        return f"{self.prefix}:idem:{key}"


def fixed_keys(keys: Keyspace) -> frozenset[str]:
    """Return every key of a partition that has no name of a task, queue, worker or key in it."""
    members = vars(Keyspace).items()
    return frozenset(getattr(keys, name) for name, found in members if isinstance(found, property))


def bands_of(queues: list[str]) -> list[tuple[str, str]]:
    """Return every (queue, band) of some queues."""
    return [(queue, band) for queue in queues for band in Band]


@dataclass(frozen=True)
class Partitions:
    """All partitions of one deployment.

    Attributes:
        prefix: the common prefix (``DTQ_PREFIX``).
        count: how many there are (``DTQ_PARTITIONS``).
    """

    prefix: str = "dtq"
    count: int = 1

    def __post_init__(self) -> None:
        check_name("prefix", self.prefix)
        check_count("partitions", self.count, 4096)

    @cached_property
    def all(self) -> tuple[Keyspace, ...]:
        """The keys of each partition."""
        if self.count == 1:
            return (Keyspace(self.prefix),)
        return tuple(Keyspace(f"{self.prefix}:{{p{i}}}", i) for i in range(self.count))

    @property
    def meta(self) -> str:
        """The hash that says how this deployment is laid out."""
        return f"{self.prefix}:meta"

    def new_id(self, idempotency_key: str = "") -> str:
        """Return a new task id.

        It is a UUIDv7 (RFC 9562), hence sorted by time, whose last four digits are the partition.
        An idempotency key chooses the partition, so that its record and its task lie together.
        """
        if not idempotency_key:
            return self.new_id_in(random.randrange(self.count))
        return self.new_id_in(self.home_of(idempotency_key))

    def new_id_in(self, index: int) -> str:
        """Return a new task id in a partition."""
        return f"{uuid_utils.uuid7().hex[:-_PARTITION_DIGITS]}{index:04x}"

    def home_of(self, name: str) -> int:
        """Return the index of the partition that a key or the name of a schedule belongs to."""
        return zlib.crc32(name.encode()) % self.count

    def key_in(self, index: int, stem: str) -> str:
        """Return the shortest idempotency key that begins so and belongs to a partition."""
        key, number = stem, 0
        while self.home_of(key) != index:
            number += 1
            key = f"{stem}:{number}"
        return key

    def of(self, task_id: str) -> Keyspace:
        """Return the partition of a task.

        Raises:
            InvalidNameError: if the id is malformed.
            TaskNotFoundError: if there is no such partition here.
        """
        index = int(check_task_id(task_id)[-_PARTITION_DIGITS:], 16)
        if index >= self.count:
            raise TaskNotFoundError(task_id)
        return self.all[index]
