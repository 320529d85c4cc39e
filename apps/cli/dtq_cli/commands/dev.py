"""``dtq dev``: everything that a project needs while it is written, in one terminal."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses

import typer

from dtq_cli.options import Common, Concurrency, Modules, Processes, Queues, check_queues
from dtq_cli.output import note, print_fields, print_json
from dtq_core.connections import redact
from dtq_core.embedded import EmbeddedServer
from dtq_core.errors import SettingsError
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
    """Run a server where none is set, workers, a scheduler and the dashboard until Ctrl-C.

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
        code = asyncio.run(_run(supervisor, settings, as_json=common.json))
    raise typer.Exit(code)


async def _run(supervisor: Supervisor, settings: Settings, *, as_json: bool) -> int:
    async with contextlib.AsyncExitStack() as stack:
        _greet(settings, await _dashboard(stack, settings), as_json=as_json)
        return await supervisor.run()


async def _dashboard(stack: contextlib.AsyncExitStack, settings: Settings) -> str | None:
    """Serve the API and the dashboard as well, where they are installed; return the address."""
    try:
        from dtq_api.server import served
        from dtq_dashboard.app import PATH, with_dashboard
    except ModuleNotFoundError:
        return None
    try:
        serving = await stack.enter_async_context(served(settings, with_dashboard))
    except SettingsError as error:  # its port is taken: work can go on without
        note(f"no dashboard: {error}")
        return None
    return f"{serving.url}{PATH}/"


def _greet(settings: Settings, dashboard: str | None, *, as_json: bool) -> None:
    url = redact(settings.redis_url or "")
    if as_json:
        print_json({"redis_url": url, "dashboard_url": dashboard})
        return
    print_fields(
        [
            ("Redis", url),
            ("Submit", "dtq submit NAME --args '[42]' --wait 10   (in another terminal, here)"),
            ("Look", "dtq list, dtq workers, dtq events --follow"),
            ("Dashboard", dashboard or "pip install 'dtq[dashboard]'"),
            ("Stop", "Ctrl-C; a second one does not wait for running tasks"),
        ]
    )
