"""All that is examined, in order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from dtq_client.doctor.crew import examine_crew
from dtq_client.doctor.finding import Finding, Verdict
from dtq_client.doctor.rights import examine_rights
from dtq_client.doctor.server import examine_server
from dtq_client.doctor.timing import examine_timing
from dtq_core import reads
from dtq_core.errors import RedisDeniedError, RedisError, RedisUnfitError
from dtq_core.fitness import check_layout, layout, server_info
from dtq_core.reads import Read
from dtq_core.store import Store


def examine(store: Store) -> Iterator[Finding]:
    """Examine a server and what works on it; nothing is changed but for a key that nobody reads.

    Raises:
        RedisUnavailableError: if the server cannot be reached.
    """
    rights = examine_rights(store)
    yield from _server(store)
    yield from examine_timing(store)
    yield rights
    if rights.verdict is Verdict.OK:  # otherwise some of these would fail
        yield _layout(store)
        yield from examine_crew(store)


def _server(store: Store) -> Iterator[Finding]:
    try:
        info = store.read(server_info())
    except RedisDeniedError:
        yield Finding(
            "server",
            Verdict.UNKNOWN,
            "INFO may not be asked",
            "Version, persistence, eviction, memory and replicas are seen there.",
            "redis-cli ACL SETUSER USER +info",
        )
        return
    now_s = store.read(reads.now_ms()) / 1000
    yield from examine_server(info, _appendfsync(store), now_s)


def _appendfsync(store: Store) -> str | None:
    """That setting; None where the server does not let it be read, as hosted ones do not."""
    with contextlib.suppress(RedisError):
        return store.read(
            Read([("CONFIG", "GET", "appendfsync")], lambda replies: _value(replies[0]))
        )
    return None


def _value(reply: list[bytes]) -> str | None:
    return reply[1].decode() if len(reply) == 2 else None


def _layout(store: Store) -> Finding:
    partitions = store.partitions
    why = "All programs of a deployment need the same number of partitions."
    recorded = store.read(layout(partitions, lay_out=False))
    try:
        check_layout(partitions, recorded)
    except RedisUnfitError as error:
        return Finding("layout", Verdict.DANGER, str(error), why, "Set DTQ_PARTITIONS as it says.")
    count = f"{partitions.count} partition{'s' if partitions.count > 1 else ''}"
    says = f"{count} under the prefix {partitions.prefix}"
    return Finding("layout", Verdict.OK, says if recorded else f"{says}, not used yet", why)
