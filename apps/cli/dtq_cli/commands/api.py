"""``dtq api``: the HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from dtq_cli.options import Common
from dtq_core.errors import SettingsError
from dtq_core.logs import configure
from dtq_core.loops import run


def api(
    common: Common,
    host: Annotated[
        str | None, typer.Option("--host", help="The address to listen on.", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", help="The port; 0: any free one.", show_default=False),
    ] = None,
) -> None:
    """Serve HTTP until SIGTERM or Ctrl-C.

    Without API keys it serves this machine only, and refuses to listen on another address. Needs
    `pip install 'dtq[api]'`. See [the HTTP API](http-api.md).
    """
    settings = common.service_settings(api_host=host, api_port=port)
    configure(settings)
    try:
        from dtq_api.server import serve
    except ModuleNotFoundError as error:
        raise SettingsError(f"{error.name} is missing: pip install 'dtq[api]'") from None
    run(serve(settings))
