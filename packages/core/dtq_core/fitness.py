"""Is this Redis fit for dtq, and laid out as this process believes? Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dtq_core.errors import RedisUnfitError
from dtq_core.keyspace import Partitions
from dtq_core.reads import Read

MIN_VERSION = (6, 2)


def layout(partitions: Partitions, *, lay_out: bool) -> Read[bytes | None]:
    """The recorded layout, None where there is none.

    Args:
        partitions: of this process.
        lay_out: whether their number is recorded where none is.
    """
    read = ("HGET", partitions.meta, "partitions")
    record = ("HSETNX", partitions.meta, "partitions", partitions.count)
    return Read([record, read] if lay_out else [read], lambda replies: replies[-1])


def server_info() -> Read[dict[str, Any]]:
    """What the server says of itself."""
    return Read([("INFO",)], lambda replies: replies[0])


def check_layout(partitions: Partitions, recorded: bytes | None) -> None:
    """Check the recorded layout, None where there is none, against this process.

    Raises:
        RedisUnfitError: if it was made for another number of partitions.
    """
    if recorded is not None and recorded != str(partitions.count).encode():
        found = recorded.decode("utf-8", "replace")
        raise RedisUnfitError(
            f"the prefix {partitions.prefix!r} was laid out with DTQ_PARTITIONS={found}, "
            f"but this process has {partitions.count}: set DTQ_PARTITIONS={found}"
        )


def version_of(info: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the major and minor version that INFO tells of; None where it tells of none."""
    numbers = re.match(r"(\d+)\.(\d+)", str(info.get("redis_version", "")))
    return (int(numbers[1]), int(numbers[2])) if numbers else None


def check_server(info: dict[str, Any], *, eviction_matters: bool) -> None:
    """Check what INFO says. What it does not say, because a right is missing, is not checked.

    Args:
        info: the reply, decoded.
        eviction_matters: whether a server that evicts is refused.

    Raises:
        RedisUnfitError: if the server is too old, or may throw tasks away.
    """
    version = version_of(info)
    if version is not None and version < MIN_VERSION:
        raise RedisUnfitError(
            f"Redis {info['redis_version']} is too old: "
            f"dtq needs {'.'.join(map(str, MIN_VERSION))} or newer"
        )
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if eviction_matters and policy != "noeviction":
        raise RedisUnfitError(
            f"Redis may evict tasks (maxmemory-policy {policy}): run "
            "CONFIG SET maxmemory-policy noeviction, or accept the loss with --allow-eviction"
        )
