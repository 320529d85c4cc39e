"""``dtq api``: the HTTP API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dtq_cli.options import Common
from dtq_core.errors import SettingsError
from dtq_core.logs import configure
from dtq_core.loops import run

if TYPE_CHECKING:
    from dtq_api.server import Dress


def api(
    common: Common,
    host: Annotated[
        str | None, typer.Option("--host", help="The address to listen on.", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", help="The port; 0: any free one.", show_default=False),
    ] = None,
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Serve the dashboard too, under /dashboard.")
    ] = False,
) -> None:
    """Serve HTTP until SIGTERM or Ctrl-C.

    Without API keys it serves this machine only, and refuses to listen on another address. Needs
    `pip install 'dtq[api]'`, or `'dtq[dashboard]'` for both. See [the HTTP API](http-api.md) and
    [the dashboard](dashboard.md).
    """
    settings = common.service_settings(api_host=host, api_port=port)
    configure(settings)
    extra = "dashboard" if dashboard else "api"
    try:
        from dtq_api.server import serve

        dress = _dashboard() if dashboard else None
    except ModuleNotFoundError as error:
        raise SettingsError(f"{error.name} is missing: pip install 'dtq[{extra}]'") from None
    run(serve(settings, dress))


def _dashboard() -> Dress:
    from dtq_dashboard.app import with_dashboard

    return with_dashboard
