"""The command line of each system under comparison: ``python program.py on_<system> COMMAND``.

describe               its name, version, and how it is set up
single TASKS BYTES     submit one task after the other; prints the seconds that took
bulk TASKS BYTES       submit in the way its documentation recommends for many; prints the seconds
paced TASKS PAUSE_US   submit numbered tasks with pauses; prints when each call began, in ns
sleeper                submit one task that sleeps for two seconds
worker PROCESSES       become a worker, set up for speed as its documentation advises
worker-default         become a worker with the settings it has when nothing is said
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from system import System

SLEEP_S = 2.0
CHUNK = 1_000
"""So many tasks go into one call of a bulk interface."""
WARM_UP = 20


def main() -> None:
    """Import the system as a module of its own, so that its tasks get the names workers know."""
    module, command, *rest = sys.argv[1:]
    system: System = import_module(module).system
    if command == "describe":
        print(json.dumps(describe(system)))
    elif command == "worker":
        _become(system.worker(int(rest[0])))
    elif command == "worker-default":
        _become(system.default_worker())
    else:
        print(json.dumps(asyncio.run(_submitting(system, command, [int(text) for text in rest]))))


def describe(system: System) -> dict[str, object]:
    return {
        "name": system.name,
        "version": version(system.package),
        "acknowledges": system.acknowledges,
        "setting": system.setting,
        "alone": system.alone,
    }


async def _submitting(system: System, command: str, numbers: list[int]) -> object:
    await system.open()
    try:
        if command == "single":
            return await _single(system, *numbers)
        if command == "bulk":
            return await _bulk(system, *numbers)
        if command == "paced":
            return await _paced(system, *numbers)
        if command == "sleeper":
            return await system.submit("sleeper", SLEEP_S)
        raise SystemExit(__doc__)
    finally:
        await system.close()


async def _single(system: System, tasks: int, size: int) -> float:
    text = "x" * size
    for _ in range(WARM_UP):
        await system.submit("noop", text)
    begin = time.perf_counter()
    for _ in range(tasks):
        await system.submit("noop", text)
    return time.perf_counter() - begin


async def _bulk(system: System, tasks: int, size: int) -> float:
    text: object = "x" * size
    await system.submit("noop", text)
    begin = time.perf_counter()
    for first in range(0, tasks, CHUNK):
        await system.submit_many("noop", [text] * min(CHUNK, tasks - first))
    return time.perf_counter() - begin


async def _paced(system: System, tasks: int, pause_us: int) -> list[int]:
    """Submit at fixed times, so that a slow call is not followed by a slower pace."""
    began = []
    due = time.perf_counter()
    for number in range(tasks):
        due += pause_us / 1e6
        if (left := due - time.perf_counter()) > 0:
            time.sleep(left)  # noqa: ASYNC251 - nothing else runs in the loop
        began.append(time.monotonic_ns())
        await system.submit("numbered", number)
    return began


def _become(command: list[str]) -> None:
    """Give way to the worker; its programs lie beside this interpreter, not always on the path."""
    program = str(Path(sys.executable).parent / command[0])
    os.execv(program, [program, *command[1:]])


if __name__ == "__main__":
    main()
