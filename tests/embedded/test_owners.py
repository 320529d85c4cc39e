"""One server a folder, for as long as its owner lives, however that one ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from dtq_core.embedded import EmbeddedServer, find_running
from embedded.processes import (
    OWN,
    START,
    START_AND_WAIT,
    guard_of,
    is_gone,
    kill,
    link_to,
    running,
    said,
)
from support.eventually import eventually


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_second_start_attaches_and_leaves_the_server_running(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path) as first:
        with EmbeddedServer.start(tmp_path) as second:
            assert (second.pid, second.owned) == (first.pid, False)
        assert find_running(tmp_path) == first.url


def test_twenty_starts_at_once_make_one_server(tmp_path: Path) -> None:
    code = f"""{OWN}
go = time.time() + 0.3
for _ in range(20):
    if os.fork() == 0:
        time.sleep(go - time.time())
        server = EmbeddedServer.start(folder)
        os.write(1, f"{{server.pid}} {{server.owned}}\\n".encode())
        os.read(0, 1)
        server.stop()
        os._exit(0)
for _ in range(20):
    os.wait()
"""
    with running(code, tmp_path) as starters:
        lines = [said(starters) for _ in range(20)]
        assert len({pid for pid, _ in lines}) == 1
        assert sorted(owned for _, owned in lines) == ["False"] * 19 + ["True"]
        starters.communicate("")
    assert is_gone(int(lines[0][0]))


def test_a_start_waits_while_the_last_server_stops(tmp_path: Path) -> None:
    first = EmbeddedServer.start(tmp_path)
    with ThreadPoolExecutor() as threads:
        with frozen(first.pid):
            stopped = threads.submit(first.stop)
            state = tmp_path / ".dtq" / "server.json"
            eventually("it is about to stop", lambda: not state.exists())
            started = threads.submit(EmbeddedServer.start, tmp_path)
            with pytest.raises(TimeoutError):
                started.result(timeout=0.3)
        stopped.result(timeout=15)
        with started.result(timeout=15) as second:
            assert (second.owned, second.pid != first.pid) == (True, True)
            assert find_running(tmp_path) == second.url


def test_a_server_starts_again_right_after_its_owner_was_killed(tmp_path: Path) -> None:
    for _ in range(3):
        with running(START_AND_WAIT, tmp_path) as owner:
            assert said(owner)[1] == "True"
            kill(owner)
    with EmbeddedServer.start(tmp_path) as server:
        assert server.owned


def test_the_server_ends_with_an_owner_that_is_killed(tmp_path: Path) -> None:
    with running(START_AND_WAIT, tmp_path) as owner:
        pid, guard = int(said(owner)[0]), guard_of(tmp_path)
        kill(owner)
    _ends(pid, guard, tmp_path)


def test_a_child_of_the_owner_does_not_keep_the_server(tmp_path: Path) -> None:
    code = f"""{START}
if os.fork() == 0:
    time.sleep(60)
subprocess.Popen(["sleep", "60"], close_fds=False)
print("has children", flush=True)
time.sleep(60)
"""
    with running(code, tmp_path) as owner:
        pid, guard = int(said(owner)[0]), guard_of(tmp_path)
        assert said(owner) == ["has", "children"]
        kill(owner)
        try:
            _ends(pid, guard, tmp_path)
        finally:
            os.killpg(owner.pid, signal.SIGKILL)


def test_a_fork_of_the_owner_cannot_stop_the_server(tmp_path: Path) -> None:
    code = f"""{START}
child = os.fork()
if child == 0:
    server.stop()
    os._exit(0)
os.waitpid(child, 0)
print(find_running(folder) == server.url, flush=True)
server.stop()
"""
    with running(code, tmp_path) as owner:
        pid = int(said(owner)[0])
        assert said(owner) == ["True"]
        owner.wait(timeout=15)
        assert is_gone(pid)


def test_ctrl_c_at_the_terminal_does_not_reach_the_server(tmp_path: Path) -> None:
    code = f"""{OWN}
with EmbeddedServer.start(folder) as server:
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        time.sleep(0.3)
        print(find_running(folder) == server.url, flush=True)
"""
    with running(code, tmp_path) as owner:
        said(owner)
        os.killpg(owner.pid, signal.SIGINT)
        assert said(owner) == ["True"]
        assert owner.wait(timeout=15) == 0
    assert find_running(tmp_path) is None


def test_a_guard_told_to_end_takes_its_server_along(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path) as server:
        os.kill(guard_of(tmp_path), signal.SIGTERM)
        eventually("the server is gone", lambda: is_gone(server.pid))


def test_a_server_that_dies_leaves_the_folder_free(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path) as server:
        os.kill(server.pid, signal.SIGKILL)
        with EmbeddedServer.start(tmp_path) as second:
            assert second.owned
            assert second.pid != server.pid


def test_a_server_whose_guard_was_killed_still_serves_and_ends_with_stop(tmp_path: Path) -> None:
    server = EmbeddedServer.start(tmp_path)
    os.kill(guard_of(tmp_path), signal.SIGKILL)
    assert find_running(tmp_path) == server.url
    server.stop()
    assert is_gone(server.pid)


def test_a_server_that_lost_owner_and_guard_is_ended_by_the_next_start(tmp_path: Path) -> None:
    with running(START_AND_WAIT, tmp_path) as owner:
        orphan = int(said(owner)[0])
        with link_to(find_running(tmp_path) or "") as link:
            link.command("SET", "kept", "1")
        os.kill(guard_of(tmp_path), signal.SIGKILL)
        kill(owner)
    assert not is_gone(orphan)
    with EmbeddedServer.start(tmp_path) as server, link_to(server.url) as link:
        assert is_gone(orphan)
        assert server.owned
        assert link.command("GET", "kept") == b"1"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_start_that_is_broken_off_leaves_nothing_behind(
    number: signal.Signals, tmp_path: Path
) -> None:
    program, pid_file = tmp_path / "never-ready", tmp_path / "pid"
    program.write_text(f"#!/bin/sh\necho $$ > {pid_file}\nexec sleep 60\n")
    program.chmod(0o755)
    code = f"{OWN}\nEmbeddedServer.start(folder, redis_server={str(program)!r})"
    with running(code, tmp_path) as owner:
        eventually("the program runs", lambda: pid_file.exists() and pid_file.read_text())
        os.killpg(owner.pid, number)
        owner.wait(timeout=15)
    eventually("the program is gone", lambda: is_gone(int(pid_file.read_text())))
    with EmbeddedServer.start(tmp_path) as server:
        assert server.owned


def _ends(server: int, guard: int, folder: Path) -> None:
    eventually("the server is gone", lambda: is_gone(server))
    eventually("its guard is gone", lambda: is_gone(guard))
    assert not (folder / ".dtq" / "server.json").exists()
    assert not (folder / ".dtq" / "redis.sock").exists()
