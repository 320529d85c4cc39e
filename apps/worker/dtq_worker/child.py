"""A worker process: reads its orders from its supervisor, imports the handlers, works.

The orders come as one line of JSON on standard input, a socket. It then stays open: anything more
on it means to hurry, its end that the supervisor is gone, and the child stops in order. The other
way go lines: ``suspects`` when tasks wait for a process of their own, or why a child cannot start.

SIGTERM, however often, means to stop in order. A service manager may send it to every process of a
group, and the supervisor once more.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import resource
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec
import structlog

from dtq_core import codec
from dtq_core.errors import DtqError, InputError, RedisFullError, RedisUnavailableError
from dtq_core.logs import configure
from dtq_core.loops import run
from dtq_core.outage import Outage
from dtq_core.settings import Settings
from dtq_tasks import default_registry
from dtq_worker.worker import Worker

_log = structlog.get_logger("dtq.worker")

EXIT_HURRIED = 1
EXIT_CANNOT_START = 3
"""The supervisor does not start a child again that ends with this."""
SUSPECTS_WAIT = b"suspects"
REFUSAL = b"refused: "
MAX_REFUSAL_BYTES = 4_096

_LOOK_AT_SELF_S = 1.0


class Orders(msgspec.Struct, frozen=True):
    """What a supervisor tells a child.

    Attributes:
        worker_id: its name.
        modules: what to import for handlers.
        queues: what to serve; None for the queues of the handlers.
        settings: every setting by name.
        allow_eviction: whether to work on a server that may throw tasks away.
        isolating: whether to run nothing but suspects, and to end when there are none.
    """

    worker_id: str
    modules: list[str]
    queues: list[str] | None
    settings: dict[str, Any]
    allow_eviction: bool
    isolating: bool = False


def import_handlers(modules: Sequence[str]) -> None:
    """Import the modules that define handlers, from the current folder too.

    Raises:
        InputError: if one cannot be imported, with the reason in one line.
    """
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for module in modules:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:  # whatever user code raises when imported
            raise InputError(f"cannot import {module!r}: {codec.describe(error)}") from error
    if not default_registry.names():
        raise InputError(f"no task is defined in {', '.join(modules)}: decorate one with @task")


def main() -> None:
    """Run one child to its end, and exit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is the supervisor's
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # which blocked it until here
    orders_fd = _keep_stdin()
    orders = msgspec.json.decode(_read_line(orders_fd), type=Orders)
    os.set_blocking(orders_fd, False)  # a supervisor that stands still must not hold it up
    settings = Settings(**orders.settings)
    configure(settings)
    try:
        import_handlers(orders.modules)
        worker = Worker(
            queues=orders.queues,
            worker_id=orders.worker_id,
            scheduler=False,
            supervised=True,
            allow_eviction=orders.allow_eviction,
            isolating=orders.isolating,
            on_suspects=lambda: _tell(orders_fd, SUSPECTS_WAIT),
            settings=settings,
        )
        run(_work(worker, settings, orders_fd))
    except DtqError as error:
        _tell(orders_fd, REFUSAL + str(error).encode("utf-8", "replace")[:MAX_REFUSAL_BYTES])
        _exit(EXIT_CANNOT_START)


def _exit(code: int) -> NoReturn:
    """End now: a handler that does not stop, in a thread or on the loop, must not hold it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _keep_stdin() -> int:
    """Move standard input away from handlers, which get an empty one."""
    kept = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return kept


def _tell(fd: int, line: bytes) -> None:
    """Tell the supervisor, if it is still there."""
    with contextlib.suppress(OSError):
        os.write(fd, line.replace(b"\n", b" ") + b"\n")


def _read_line(fd: int) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
        part = os.read(fd, 65_536)
        if not part:
            break
        line += part
    return bytes(line)


async def _work(worker: Worker, settings: Settings, orders_fd: int) -> NoReturn:
    """Work to the end, and exit.

    Raises:
        DtqError: if it cannot start.
    """
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, worker.retire)

    def on_supervisor() -> None:
        worker.retire()
        if os.read(orders_fd, 1):
            worker.stop()
        else:
            loop.remove_reader(orders_fd)

    loop.add_reader(orders_fd, on_supervisor)
    watching = asyncio.create_task(_look_at_self(worker, settings))
    try:
        await _run_once_redis_is_there(worker)
    except DtqError:
        watching.cancel()
        raise
    except BaseException:
        _log.exception("a worker process breaks off")
        _exit(EXIT_HURRIED)
    _exit(EXIT_HURRIED if worker.hurried else 0)


async def _run_once_redis_is_there(worker: Worker) -> None:
    """It was there when the supervisor started, so it will come back."""
    outage = Outage(_log, "a worker process waits for Redis", "Redis is there")
    while not worker.stopping:
        try:
            await worker.run()
        except (RedisUnavailableError, RedisFullError) as error:
            await asyncio.sleep(outage.met(error))


async def _look_at_self(worker: Worker, settings: Settings) -> None:
    """Stop once this process has done or grown enough; the supervisor starts a fresh one."""
    while True:
        await asyncio.sleep(_LOOK_AT_SELF_S)
        done, memory = settings.max_tasks_per_process, settings.max_memory_mib
        if (done and worker.executed >= done) or (memory and _peak_mib() >= memory):
            worker.retire()
            return


def _peak_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024) if sys.platform == "darwin" else peak / 1024


if __name__ == "__main__":
    main()
