"""What is stored and handed about: the value types of a task.

=============  ==========================================================
Submission     what a client asks for, checked and encoded, ready to store
Claim          what a worker holds: one attempt under one lease
TaskInfo       what readers see
Attempt        one ended attempt
=============  ==========================================================
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from dtq_core import codec
from dtq_core.clock import rfc3339
from dtq_core.errors import EncodingError, InvalidOptionError
from dtq_core.limits import (
    MAX_ATTEMPTS,
    Band,
    check_band,
    check_count,
    check_durability,
    check_duration_ms,
    check_idempotency_key,
    check_name,
    check_size,
)
from dtq_core.settings import Settings
from dtq_core.states import Status

DEFAULT_QUEUE = "default"
DEFAULT_MAX_ATTEMPTS = 3
DEFAULT_RETENTION_MS = 86_400_000
"""What the scripts assume where a record names no retention (``lib/terminal.lua``)."""


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a task is to be run, as asked for at submission; durations are seconds.

    Attributes:
        queue: the queue it goes to.
        band: its priority in the queue.
        delay: how long it waits before it may start.
        ttl: how long it may wait; after that it is ``EXPIRED`` and never starts.
        max_attempts: how often its handler may start.
        timeout: how long one attempt may run; None leaves it to the handler's own definition.
        dead_letter: whether a permanent failure goes to the dead-letter stream.
        result_ttl: how long its result stays; None leaves it to the handler's own definition.
        idempotency_key: a second submission under the same key is the same task.
        durability: how far it must have got when it is accepted; None leaves it to the setting of
            whoever submits. It is no part of the record.
    """

    queue: str = DEFAULT_QUEUE
    band: str = Band.NORMAL
    delay: float = 0
    ttl: float | None = None
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    timeout: float | None = None
    dead_letter: bool = True
    result_ttl: float | None = None
    idempotency_key: str | None = None
    durability: str | None = None

    def __post_init__(self) -> None:
        """Check every option; no message of Redis is needed to find a wrong one."""
        check_name("queue name", self.queue)
        check_band(self.band)
        check_duration_ms("delay", self.delay)
        check_count("max_attempts", self.max_attempts, MAX_ATTEMPTS)
        if self.ttl is not None:
            check_duration_ms("ttl", self.ttl)
        if self.timeout is not None and check_duration_ms("timeout", self.timeout) == 0:
            raise InvalidOptionError("timeout 0 would end every attempt at once")
        if self.result_ttl is not None and check_duration_ms("result_ttl", self.result_ttl) == 0:
            raise InvalidOptionError("result_ttl 0 would drop the result at once")
        if self.idempotency_key is not None:
            check_idempotency_key(self.idempotency_key)
        if self.durability is not None:
            check_durability(self.durability)
        if not isinstance(self.dead_letter, bool):
            raise InvalidOptionError(f"dead_letter {self.dead_letter!r} is not True or False")


class Spec(msgspec.Struct, frozen=True, omit_defaults=True):
    """The part of a record that scripts never look at: what to run, and how.

    Attributes:
        name: the task's name.
        timeout: seconds one attempt may run, where the submitter says so.
        result_ttl: seconds the result stays, where the submitter says so.
        slot_ms: of a recurring task, the time it was fired for.
        traceparent: the context of the span that submitted it (W3C Trace Context), where there is
            one.
        tracestate: what goes with that.
    """

    name: str
    timeout: float | None = None
    result_ttl: float | None = None
    slot_ms: int | None = None
    traceparent: str | None = None
    tracestate: str | None = None


_spec_encoder = msgspec.json.Encoder()
_spec_decoder = msgspec.json.Decoder(Spec)


def encode_spec(spec: Spec) -> bytes:
    """Return the stored form."""
    return _spec_encoder.encode(spec)


class Submission(NamedTuple):
    """A task, checked and encoded, in the order in which the script ``submit`` reads it."""

    task_id: str
    queue: str
    band: str
    spec: bytes
    payload: bytes
    max_attempts: int
    delay_ms: int
    ttl_ms: int
    idempotency_key: str
    fingerprint: str
    idempotency_ttl_ms: int
    retention_ms: int | str
    dead_letter: str


class KeyUse(NamedTuple):
    """Whose an idempotency key is, and what counts as the same request under it.

    Attributes:
        owner: a name; keys of different owners are different keys. Empty for the Python clients.
        whole: whether the other options count too, besides the task's name, queue and arguments. A
            Python client does not count them: they come from the handler's definition, which may
            change between two tries.
    """

    owner: str = ""
    whole: bool = False


BY_CLIENT = KeyUse()


class SubmissionForm:
    """The stored form of one task's submissions under the same options, checked and encoded once.

    Every way to submit comes through here.
    """

    def __init__(
        self,
        name: str,
        options: Options,
        settings: Settings,
        slot_ms: int | None = None,
        key_use: KeyUse = BY_CLIENT,
    ) -> None:
        """Check and encode what all have in common.

        Args:
            name: the task's name.
            options: how to run it.
            settings: of this process.
            slot_ms: of a recurring task, the time it is fired for.
            key_use: of the idempotency key.

        Raises:
            InvalidNameError: for a bad task name.
        """
        self._name = check_name("task name", name)
        self._options = options
        self._max_payload_bytes = settings.max_payload_bytes
        self._whole = key_use.whole
        key = self.idempotency_key = _stored_key(options.idempotency_key, key_use.owner)
        key_ttl = check_duration_ms("idempotency_ttl", settings.idempotency_ttl) if key else 0
        retention = _retention_ms(options, settings, key_ttl)
        self._common = Submission(
            task_id="",
            queue=options.queue,
            band=str(options.band),
            spec=encode_spec(Spec(name, options.timeout, options.result_ttl, slot_ms)),
            payload=b"",
            max_attempts=options.max_attempts,
            delay_ms=check_duration_ms("delay", options.delay),
            ttl_ms=-1 if options.ttl is None else check_duration_ms("ttl", options.ttl),
            idempotency_key=key,
            fingerprint="",
            idempotency_ttl_ms=key_ttl,
            retention_ms="" if retention == DEFAULT_RETENTION_MS else retention,
            dead_letter="" if options.dead_letter else "0",
        )

    def submission(self, task_id: str, payload: bytes) -> Submission:
        """Return the submission of one task.

        Args:
            task_id: its new id.
            payload: JSON text of ``[args, kwargs]``.

        Raises:
            TooLargeError: for a payload over the limit.
        """
        check_size(f"the payload of {self._name}", len(payload), self._max_payload_bytes)
        meaning = ""
        if self.idempotency_key:
            meaning = fingerprint(self._name, payload, self._options, whole=self._whole)
        return self._common._replace(task_id=task_id, payload=payload, fingerprint=meaning)


_KEY_OWNER_END = " "
"""Parts the owner of a key from the key: neither can hold a space."""


def _stored_key(key: str | None, owner: str) -> str:
    if key is None:
        return ""
    return f"{owner}{_KEY_OWNER_END}{key}" if owner else key


def _retention_ms(options: Options, settings: Settings, key_ttl_ms: int) -> int:
    """The longest of what needs the record: itself, its result, its idempotency key."""
    result_ttl = settings.result_ttl if options.result_ttl is None else options.result_ttl
    return max(
        check_duration_ms("retention", settings.retention),
        check_duration_ms("result_ttl", result_ttl),
        key_ttl_ms,
    )


def fingerprint(name: str, payload: bytes, options: Options, *, whole: bool = False) -> str:
    """Return what makes two submissions the same request: name, queue and the payload's meaning.

    Object members are compared whatever their order, numbers by the text msgspec gives them.

    Args:
        name: of the task.
        payload: JSON text of ``[args, kwargs]``.
        options: how to run it.
        whole: whether its other options count too; one that is at its default is as good as none.
    """
    meaning = [name, options.queue, codec.decode(payload, "payload")]
    if whole:
        given = msgspec.to_builtins(options)
        counted = {name: value for name, value in given.items() if name in _COUNTED}
        meaning += [counted] if counted else []
    text = msgspec.json.encode(meaning, order="deterministic")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


_COUNTED = frozenset(Options.__struct_fields__) - {"queue", "idempotency_key", "durability"}
"""The options that a fingerprint of the whole request has besides the queue."""


class Claim(NamedTuple):
    """One attempt of a task, held by one worker under one lease, as the scripts hand it over."""

    task_id: str
    queue: str
    band: str
    entry_id: str
    attempt: int
    max_attempts: int
    lease: int
    spec: bytes
    payload: bytes
    submitted_ms: int
    queued_ms: int
    started_ms: int
    postponed_ms: int
    crashes: int
    releases: int

    @property
    def entry(self) -> str:
        """Where its entry lies, as the script ``adopt`` names it."""
        return f"{self.queue}:{self.band}:{self.entry_id}"


def decode_spec(text: bytes) -> Spec:
    """Decode the spec of a record.

    Raises:
        EncodingError: if it is not one.
    """
    try:
        return _spec_decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise EncodingError(f"the record's spec cannot be read: {error}") from None


class Payload(NamedTuple):
    """The arguments of a task; None where they cannot be read."""

    args: list[Any] | None
    kwargs: dict[str, Any] | None


def decode_payload(text: bytes) -> Payload:
    """Decode the payload of a record, whatever it holds."""
    try:
        return Payload(*msgspec.convert(codec.decode(text, "payload"), _PAYLOAD))
    except (EncodingError, msgspec.ValidationError):
        return Payload(None, None)


_PAYLOAD = tuple[list[Any], dict[str, Any]]


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One ended attempt.

    Attributes:
        attempt: its number, from 1.
        lease: the lease it ran under.
        worker: who ran it.
        outcome: ``succeeded``, ``retry``, ``failed``, ``cancelled``, ``crashed``, or
            ``unreadable`` where its item in the list is not ours.
        started_at: RFC 3339, Redis time.
        ended_at: RFC 3339, Redis time.
        error: ``type``, ``message`` and ``traceback`` where it did not succeed.
    """

    attempt: int
    lease: int
    worker: str
    outcome: str
    started_at: str | None
    ended_at: str | None
    error: dict[str, Any] | None = None


class _StoredAttempt(msgspec.Struct):
    attempt: int
    lease: int
    worker: str
    outcome: str
    ended_ms: int
    started_ms: int | None = None
    error: dict[str, Any] | None = None


_attempt_decoder = msgspec.json.Decoder(_StoredAttempt)


def decode_attempt(text: bytes) -> Attempt:
    """Decode an item of a task's list of attempts; one that cannot be read says so itself."""
    try:
        stored = _attempt_decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Attempt(
            attempt=0, lease=0, worker="", outcome="unreadable", started_at=None, ended_at=None
        )
    return Attempt(
        attempt=stored.attempt,
        lease=stored.lease,
        worker=stored.worker,
        outcome=stored.outcome,
        started_at=None if stored.started_ms is None else rfc3339(stored.started_ms),
        ended_at=rfc3339(stored.ended_ms),
        error=stored.error,
    )


SUCCESS_FIELDS = ("status", "attempt", "lease", "worker", "started_ms", "finished_ms")
"""The fields of a record that say how a successful attempt went: the last one, in no list."""


def decode_success(values: list[bytes | None]) -> Attempt | None:
    """Decode the ``SUCCESS_FIELDS`` of a record; None unless its task has succeeded."""
    record = _texts(SUCCESS_FIELDS, values)
    if record.get("status") != Status.SUCCEEDED:
        return None
    return Attempt(
        attempt=_int(record, "attempt"),
        lease=_int(record, "lease"),
        worker=record.get("worker", ""),
        outcome="succeeded",
        started_at=_time(record, "started_ms"),
        ended_at=_time(record, "finished_ms"),
    )


class TaskInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A task as readers see it, under the same names in Python, CLI and HTTP.

    Times are RFC 3339 in UTC, by the clock of Redis; None where it has not come to that.
    """

    id: str
    name: str
    queue: str
    band: str
    status: Status
    attempt: int
    max_attempts: int
    worker: str | None = None
    error: str | None = None
    progress: Any = None
    submitted_at: str | None = None
    queued_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    due_at: str | None = None
    expires_at: str | None = None
    cancel_requested_at: str | None = None
    idempotency_key: str | None = None
    crashes: int = 0
    releases: int = 0
    requeues: int = 0


INFO_FIELDS = (
    "status",
    "spec",
    "queue",
    "band",
    "attempt",
    "max_attempts",
    "worker",
    "error",
    "progress",
    "submitted_ms",
    "queued_ms",
    "started_ms",
    "finished_ms",
    "due_ms",
    "expires_ms",
    "cancel_requested",
    "idem_key",
    "crashes",
    "releases",
    "requeues",
    "postponed_ms",
)
"""The fields of a record from which :func:`decode_info` makes a :class:`TaskInfo`."""


def decode_info(task_id: str, values: list[bytes | None]) -> TaskInfo | None:
    """Decode the ``INFO_FIELDS`` of a record.

    Returns:
        None where there is no record. Whatever else the record holds, there is an answer: a part
        that cannot be read is left out, so that one bad record never breaks a list.
    """
    record = _texts(INFO_FIELDS, values)
    if record.get("status") not in Status.__members__:
        return None
    status = Status(record["status"])
    return TaskInfo(
        id=task_id,
        name=_name_of(record.get("spec", "")),
        queue=record.get("queue", ""),
        band=record.get("band", ""),
        status=status,
        attempt=_int(record, "attempt"),
        max_attempts=_int(record, "max_attempts"),
        worker=record.get("worker") or None,
        error=_error(status, record),
        progress=_progress(record.get("progress")),
        submitted_at=_time(record, "submitted_ms"),
        queued_at=_time(record, "queued_ms"),
        started_at=_time(record, "started_ms"),
        finished_at=_time(record, "finished_ms"),
        due_at=_time(record, "due_ms") if status in {Status.SCHEDULED, Status.RETRYING} else None,
        expires_at=_time(record, "expires_ms"),
        cancel_requested_at=_time(record, "cancel_requested"),
        idempotency_key=_given_key(record.get("idem_key")),
        crashes=_int(record, "crashes"),
        releases=_int(record, "releases"),
        requeues=_int(record, "requeues"),
    )


def _texts(names: Sequence[str], values: list[bytes | None]) -> dict[str, str]:
    """The fields that a record has, as text."""
    return {
        name: value.decode("utf-8", "replace")
        for name, value in zip(names, values, strict=True)
        if value is not None
    }


def _given_key(stored: str | None) -> str | None:
    """The idempotency key as it was given, without its owner."""
    return stored and stored.rpartition(_KEY_OWNER_END)[2]


def _error(status: Status, record: Mapping[str, str]) -> str | None:
    """Why the last attempt failed, why it ended, or why it waits although it was taken."""
    if status in {Status.SCHEDULED, Status.QUEUED} and _int(record, "postponed_ms"):
        return (
            f"given back: no worker that took it knows the task {_name_of(record.get('spec', ''))}"
        )
    return None if status is Status.SUCCEEDED else record.get("error")


def _name_of(spec: str) -> str:
    try:
        return decode_spec(spec.encode()).name
    except EncodingError:
        return ""


def _progress(text: str | None) -> Any:
    try:
        return None if text is None else codec.decode(text, "progress")
    except EncodingError:
        return None


def _int(record: Mapping[str, str], name: str) -> int:
    text = record.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _time(record: Mapping[str, str], name: str) -> str | None:
    ms = _int(record, name)
    return rfc3339(ms) if 0 < ms < 253_402_300_800_000 else None  # the year 10000
