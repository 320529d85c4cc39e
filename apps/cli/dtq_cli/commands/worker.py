"""``dtq worker``: worker processes under a supervisor."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from dtq_cli.options import (
    AllowEviction,
    Common,
    Concurrency,
    Modules,
    Processes,
    Queues,
    check_queues,
)
from dtq_core.logs import configure
from dtq_worker.supervisor import Supervisor


def worker(
    modules: Modules,
    common: Common,
    queue: Queues = None,
    concurrency: Concurrency = None,
    processes: Processes = None,
    no_scheduler: Annotated[
        bool, typer.Option("--no-scheduler", help="Run no scheduler candidate here.")
    ] = False,
    allow_eviction: AllowEviction = False,
) -> None:
    """Run workers until SIGTERM or Ctrl-C; a second one stops them at once.

    The worker processes have a supervisor. The modules are imported for their handlers, from the
    current folder too. SIGTERM or Ctrl-C stops in order: what runs gets `DTQ_SHUTDOWN_GRACE`
    seconds, the rest is given back. A second one gives it back at once. Log lines go to stderr;
    with `--json` they are JSON.

    It exits with 1 when a module cannot be imported, when no task is defined, or when the server
    cannot be reached or is not fit. A server that still loads its data is waited for; one line says
    so.
    """
    settings = common.service_settings(concurrency=concurrency, processes=processes)
    configure(settings)
    supervisor = Supervisor(
        settings,
        modules,
        check_queues(queue),
        scheduler=not no_scheduler,
        allow_eviction=allow_eviction,
    )
    raise typer.Exit(asyncio.run(supervisor.run()))
