"""The commands that go on: worker, scheduler, dev."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis

from cli.terminal import Terminal, eventually, stop
from dtq_core.embedded import start_temporary

SERVICES = pytest.mark.parametrize(
    "command", [["worker", "handlers"], ["scheduler"]], ids=["worker", "scheduler"]
)


def leader_of(terminal: Terminal) -> bytes | None:
    leader: bytes | None = terminal.raw.get(f"{terminal.prefix}:leader:scheduler")
    return leader


def test_a_worker_stops_in_order(terminal: Terminal) -> None:
    worker = terminal.start_worker(log_level="info")
    task_id = terminal.submit("sleep", 0.3, queue="mail")
    terminal.started(task_id)
    done = stop(worker)
    assert (done.code, done.out) == (0, "")
    events = [json.loads(line)["event"] for line in done.err.splitlines()]
    assert events == ["worker started", "worker stops", "worker stopped"]
    assert terminal.client.result(task_id, 0) == "rested"


def test_ctrl_c_stops_a_worker_with_its_children(terminal: Terminal) -> None:
    worker = terminal.start_worker("--processes", "2")
    os.killpg(worker.pid, signal.SIGINT)
    out, err = worker.communicate(timeout=20)
    assert (worker.returncode, out, err) == (0, "", "")


def test_ctrl_c_stops_a_worker_whose_children_are_just_starting(terminal: Terminal) -> None:
    worker = terminal.start("worker", "handlers", "--processes", "2")
    children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children")
    eventually("there are children", lambda: len(children.read_text().split()) == 2)
    os.killpg(worker.pid, signal.SIGINT)
    out, err = worker.communicate(timeout=20)
    assert (worker.returncode, out, err) == (0, "", "")


@contextlib.contextmanager
def not_ready(terminal: Terminal) -> Iterator[None]:
    """The server answers that it cannot serve for now, as one that loads its data does."""
    spinning = threading.Thread(target=_spin, args=[terminal.raw])
    spinning.start()
    eventually("the server is busy", lambda: _is_busy(terminal.raw))
    try:
        yield
    finally:
        terminal.raw.script_kill()
        spinning.join()


def _spin(raw: redis.Redis) -> None:
    with contextlib.suppress(redis.ResponseError):  # killed
        raw.eval("while true do end", 0)


def _is_busy(raw: redis.Redis) -> bool:
    try:
        return not raw.ping()
    except redis.ResponseError:
        return True


@pytest.fixture
def starting(tmp_path: Path) -> Iterator[Terminal]:
    with start_temporary(config=["--lua-time-limit", "1"]) as server:
        made = Terminal(tmp_path, server.url, log_level="info")
        yield made
        made.close()


@SERVICES
def test_a_service_waits_for_a_server_that_is_not_ready(
    starting: Terminal, command: list[str]
) -> None:
    with not_ready(starting):
        service = starting.start(*command)
        assert service.stderr is not None
        first = json.loads(service.stderr.readline())
        assert (first["event"], first["level"]) == ("waiting for Redis", "warning")
    eventually("it leads", lambda: leader_of(starting))
    done = stop(service)
    assert (done.code, done.out) == (0, "")
    assert json.loads(done.err.splitlines()[0])["event"] == "Redis is ready"


@SERVICES
def test_a_service_that_waits_for_its_server_stops_when_told(
    starting: Terminal, command: list[str]
) -> None:
    with not_ready(starting):
        service = starting.start(*command)
        assert service.stderr is not None
        service.stderr.readline()
        done = stop(service)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_worker_serves_the_queues_it_is_given(terminal: Terminal) -> None:
    terminal.start_worker("-q", "mail", "-q", "reports", "--concurrency", "3", "--no-scheduler")
    (worker,) = terminal.json("workers")
    assert (worker["queues"], worker["concurrency"]) == (["mail", "reports"], 3)
    assert leader_of(terminal) is None


def test_a_task_that_no_worker_knows_is_dead_lettered_in_time(terminal: Terminal) -> None:
    terminal.start_worker(unknown_task_timeout=0.3, unknown_task_delay=0.1)
    task_id = terminal.submit("nobody_knows_me")
    assert terminal.ended(task_id) == "DEAD_LETTERED"
    done = terminal.run("result", task_id)
    assert done.code == 1
    assert "no worker knew this task" in done.err


@pytest.fixture
def evicting(tmp_path: Path) -> Iterator[Terminal]:
    with start_temporary(config=["--maxmemory-policy", "allkeys-lru"]) as server:
        made = Terminal(tmp_path, server.url)
        yield made
        made.close()


def test_a_worker_refuses_a_server_that_evicts(evicting: Terminal) -> None:
    done = evicting.run("worker", "handlers")
    assert (done.code, done.out) == (1, "")
    assert "maxmemory-policy allkeys-lru" in done.err
    assert "--allow-eviction" in done.err
    assert done.err.count("\n") == 1
    assert evicting.keys() == {}
    evicting.start_worker("--allow-eviction")
    assert evicting.ended(evicting.submit("add", 1, 2)) == "SUCCEEDED"


def test_schedulers_stand_by_and_take_over(terminal: Terminal) -> None:
    first = terminal.start("scheduler")
    led_by = eventually("the first one leads", lambda: leader_of(terminal))
    second = terminal.start("scheduler", log_level="info")
    assert second.stderr is not None
    assert "scheduler started" in second.stderr.readline()
    assert leader_of(terminal) == led_by
    assert stop(first) == (0, "", "")
    eventually("the second one leads", lambda: leader_of(terminal) not in {None, led_by})
    task_id = terminal.submit("add", delay=0.1)
    eventually("it promotes", lambda: terminal.client.get(task_id).status == "QUEUED")
    done = stop(second, signal.SIGINT)
    assert (done.code, done.out) == (0, "")
    assert leader_of(terminal) is None


def test_a_killed_scheduler_is_replaced_when_its_lease_ends(terminal: Terminal) -> None:
    first = terminal.start("scheduler")
    led_by = eventually("the first one leads", lambda: leader_of(terminal))
    terminal.start("scheduler")
    stop(first, signal.SIGKILL)
    eventually("the second one leads", lambda: leader_of(terminal) not in {None, led_by})


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Terminal]:
    """A project without settings, as a newcomer has it."""
    made = Terminal(tmp_path, None)
    for name in [name for name in made.environ if name.startswith("DTQ_")]:
        del made.environ[name]
    yield made
    made.close()


def test_dev_runs_everything_and_keeps_its_data(project: Terminal) -> None:
    server = project.folder / ".dtq" / "server.json"
    for expected in (1, 2):
        dev = project.start("dev", "handlers", "-p", "1", log_level="warning", api_port=0)
        eventually("the server runs", server.exists)
        below = project.folder / "below"
        below.mkdir(exist_ok=True)
        out = project.ok("submit", "add", "--args", "[1, 2]", "--delay", "0.1", "--wait", "20")
        assert out.splitlines()[1] == "3"
        assert len(project.json("list")) == expected
        os.killpg(dev.pid, signal.SIGINT)
        shown, err = dev.communicate(timeout=20)
        assert (dev.returncode, err) == (0, "")
        assert f"{project.folder}/.dtq/redis.sock" in shown
        assert "dtq submit NAME" in shown
        assert "/dashboard/" in shown
        assert not server.exists()
    assert {path.name for path in project.folder.iterdir()} >= {".dtq", "handlers.py"}


def test_dev_says_as_json_where_its_server_is(terminal: Terminal) -> None:
    dev = terminal.start("dev", "handlers", "--json", api_port=0)
    assert dev.stdout is not None
    told = json.loads(dev.stdout.readline())
    assert told["redis_url"] == terminal.environ["DTQ_REDIS_URL"]
    assert "Overview" in httpx.get(told["dashboard_url"]).text
    eventually("a worker lives", lambda: terminal.raw.exists(f"{terminal.prefix}:workers"))
    assert stop(dev) == (0, "", "")
    assert not (terminal.folder / ".dtq").exists()


def test_dev_works_without_a_dashboard_where_its_port_is_taken(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        dev = terminal.start("dev", "handlers", "--json", api_port=taken.getsockname()[1])
        assert dev.stdout is not None
        assert json.loads(dev.stdout.readline())["dashboard_url"] is None
        terminal.ended(terminal.submit("add", 1, 2))
        code, _, err = stop(dev)
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith("dtq: no dashboard: cannot listen on 127.0.0.1:")


def test_dev_leaves_no_server_behind_when_it_cannot_start(project: Terminal) -> None:
    done = project.run("dev", "no_such_module")
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert not (project.folder / ".dtq" / "server.json").exists()
