"""``dtq dev``: everything that a project needs while it is written, in one terminal."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses

import typer

from dtq_cli.options import Common, Concurrency, Modules, Processes, Queues, check_queues
from dtq_cli.output import print_fields, print_json
from dtq_core.connections import redact
from dtq_core.embedded import EmbeddedServer
from dtq_core.logs import configure
from dtq_core.settings import Settings, project_folder
from dtq_worker.supervisor import Supervisor


def dev(
    modules: Modules,
    common: Common,
    queue: Queues = None,
    concurrency: Concurrency = None,
    processes: Processes = None,
) -> None:
    """Run a server where none is set, workers and a scheduler until Ctrl-C.

    The Redis is private unless a server is set. The data stays in the folder `.dtq` of the project,
    so that tasks survive a restart; other commands find the server when they run anywhere in the
    project. Ctrl-C stops the workers first, then the server; a second Ctrl-C does not wait for
    running tasks.
    """
    settings = common.service_settings(concurrency=concurrency, processes=processes)
    queues = check_queues(queue)
    configure(settings)
    with contextlib.ExitStack() as stack:
        if settings.redis_url is None:
            server = EmbeddedServer.start(project_folder(), redis_server=settings.redis_server)
            stack.enter_context(server)
            settings = dataclasses.replace(settings, redis_url=server.url)
        supervisor = Supervisor(settings, modules, queues)
        _greet(settings, as_json=common.json)
        code = asyncio.run(supervisor.run())
    raise typer.Exit(code)


def _greet(settings: Settings, *, as_json: bool) -> None:
    url = redact(settings.redis_url or "")
    if as_json:
        print_json({"redis_url": url})
        return
    print_fields(
        [
            ("Redis", url),
            ("Submit", "dtq submit NAME --args '[42]' --wait 10   (in another terminal, here)"),
            ("Look", "dtq list, dtq workers, dtq events --follow"),
            ("Stop", "Ctrl-C; a second one does not wait for running tasks"),
        ]
    )
