"""``dtq keys``: API keys of the HTTP API."""

from __future__ import annotations

from typing import Annotated

import typer

from dtq_cli.options import Common, Reason, operator
from dtq_cli.output import Column, note, print_json, print_line, print_table
from dtq_cli.times import ago
from dtq_client.operating.api_keys import create_key, list_keys, revoke_key
from dtq_core.api_keys import ApiKey, Role

Name = Annotated[
    str, typer.Argument(help="The name of the key.", metavar="NAME", show_default=False)
]
_COLUMNS = (
    Column("NAME", cut=True),
    Column("ROLES"),
    Column("QUEUES", cut=True),
    Column("CREATED", right=True),
    Column("BY", cut=True, extra=True),
    Column("REVOKED", right=True),
)


def create(
    name: Name,
    common: Common,
    role: Annotated[
        list[Role],
        typer.Option(
            "--role", help="What it may be used for; may be repeated.", show_default=False
        ),
    ],
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue", "-q", help="Only for this queue; may be repeated.", show_default=False
        ),
    ] = None,
    reason: Reason = "",
) -> None:
    """Make an API key.

    Its token is printed once, and stored nowhere. From the first key on, the API serves nobody
    without one. See [security](security.md) for the roles.
    """
    with common.store() as store:
        key, token = create_key(store, name, role, queue or (), operator(), reason)
    if common.json:
        print_json({"name": key.name, "token": str(token)})
    else:
        print_line(str(token))
    note(f"this is the only time that the token of {key.name} is shown")


def list_all(common: Common) -> None:
    """List API keys, also the revoked ones."""
    with common.store() as store:
        found = list_keys(store)
    if common.json:
        print_json(found)
    else:
        print_table(_COLUMNS, map(_row, found))


def _row(key: ApiKey) -> tuple[object, ...]:
    return (
        key.name,
        " ".join(key.roles),
        " ".join(key.queues) or "all",
        ago(key.created_at),
        key.created_by,
        ago(key.revoked_at),
    )


def revoke(name: Name, common: Common, reason: Reason = "") -> None:
    """Revoke an API key.

    A running API takes up to a second to know. Keys go on being asked for, even after the last one
    was revoked.
    """
    with common.store() as store:
        changed = revoke_key(store, name, operator(), reason)
    if common.json:
        print_json({"name": name, "changed": changed})
    else:
        print_line(f"{name}: {'revoked' if changed else 'was revoked already'}")
