"""Reads of API keys."""

from __future__ import annotations

from typing import Any

from dtq_core.keyspace import Keyspace
from dtq_core.reads.base import Read
from dtq_core.replies import to_text


def api_keys(keys: Keyspace) -> Read[dict[str, bytes]]:
    """All API keys ever made, by name, as they are stored; they lie in the first partition."""

    def decode(replies: list[Any]) -> dict[str, bytes]:
        return {to_text(name): text for name, text in replies[0].items()}

    return Read([("HGETALL", keys.api_keys)], decode)
