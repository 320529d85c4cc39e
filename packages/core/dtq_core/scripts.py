"""The Lua scripts: loaded from files, shared steps included, run by hash, answers named.

``-- @include a b`` in a script takes in ``lib/a.lua`` and ``lib/b.lua``, each once, in the order in
which they are first needed.
"""

from __future__ import annotations

import hashlib
import re
from enum import IntEnum
from importlib import resources
from typing import NamedTuple

_LUA = resources.files("dtq_core") / "lua"
_INCLUDE = re.compile(r"^-- @include (.+)\n", re.MULTILINE)


class Code(IntEnum):
    """What a script answers for one item; ``lib/codes.lua`` holds the same numbers."""

    OK = 0
    AGAIN = 1
    DUPLICATE = 2
    CONFLICT = 3
    LOST = 4
    UNKNOWN = 5
    ENDED = 6
    REQUESTED = 7
    CORRUPT = 8
    CANCEL = 9
    DONE = 10
    DOUBT = 11


class Script(NamedTuple):
    """A script as it is sent.

    Attributes:
        name: its file, without the ending.
        text: the whole program, shared steps included.
        sha: what Redis knows it by once it is loaded.
    """

    name: str
    text: str
    sha: str


def _assemble(path: str, included: set[str]) -> str:
    text = (_LUA / path).read_text("utf-8")

    def include(match: re.Match[str]) -> str:
        parts = []
        for name in match[1].split():
            if name not in included:
                included.add(name)
                parts.append(_assemble(f"lib/{name}.lua", included))
        return "".join(parts)

    return _INCLUDE.sub(include, text)


def load(name: str) -> Script:
    """Read a script and all that it includes."""
    text = _assemble(f"{name}.lua", set())
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


_RECLAIM_LUA = load("reclaim")

SUBMIT = load("submit")
PROMOTE = load("promote")
CLAIM = load("claim")
RECLAIM = _RECLAIM_LUA
ADOPT = load("adopt")
FINISH = load("finish")
RELEASE = load("release")
RENEW = load("renew")
CANCEL = load("cancel")
EXPIRE = load("expire")
ABANDON = load("abandon")
REQUEUE = load("requeue")
PURGE = load("purge")
DISCARD = load("discard")
PAUSE = load("pause")
CRON_PUT = load("cron_put")
CRON_DROP = load("cron_drop")
CRON_PAUSE = load("cron_pause")
KEY_PUT = load("key_put")
PROBE = load("probe")
FIRE = load("fire")
VERIFY = load("verify")
RECOUNT = load("recount")
BEAT = load("beat")
LEAD = load("lead")
WATCH = load("watch")
OP_BEGIN = load("op_begin")
OP_END = load("op_end")
