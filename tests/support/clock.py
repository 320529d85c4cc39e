"""A clock that tests turn: scripts read it instead of the time of Redis.

It takes the place of ``lib/now.lua``. What Redis does by itself goes on in real time: keys pass,
entries grow idle.
"""

from __future__ import annotations

import hashlib
from importlib import resources

from dtq_core.scripts import Script

_NOW_LUA = (resources.files("dtq_core") / "lua" / "lib" / "now.lua").read_text("utf-8")
BEGIN_MS = 2_000_000_000_000


class Clock:
    """Stands still until it is turned."""

    def __init__(self) -> None:
        self.now_ms = BEGIN_MS

    def turn(self, by_ms: int) -> None:
        self.now_ms += by_ms

    def under(self, script: Script) -> Script:
        """Return a script as it runs under this clock."""
        text = script.text.replace(_NOW_LUA, f"local NOW = {self.now_ms}\n")
        sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        return Script(script.name, text, sha)
