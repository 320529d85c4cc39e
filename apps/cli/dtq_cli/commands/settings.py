"""``dtq settings``: every setting, its value, and where that comes from."""

from __future__ import annotations

from dtq_cli.options import Common
from dtq_cli.output import Column, print_json, print_table
from dtq_core.connections import redact
from dtq_core.settings import Setting, resolve

_COLUMNS = (
    Column("SETTING"),
    Column("VALUE", folded=True),
    Column("FROM"),
    Column("MEANING", folded=True, extra=True),
)


def settings(common: Common) -> None:
    """Show settings.

    Its value, where that comes from (`argument`, `environment`, `dtq.toml` or `default`) and its
    meaning. Of the URL, user and password are left out.
    """
    _, resolved = resolve(common.overrides)
    values = [(item, _shown(item)) for item in resolved]
    if common.json:
        print_json(
            [
                {
                    "name": item.name,
                    "value": value,
                    "source": item.source,
                    "meaning": item.meaning,
                }
                for item, value in values
            ]
        )
    else:
        print_table(
            _COLUMNS, [(item.name, value, item.source, item.meaning) for item, value in values]
        )


def _shown(setting: Setting) -> object:
    """A value that may be shown: of a URL, without user and password."""
    if setting.name == "redis_url" and setting.value is not None:
        return redact(setting.value)
    return setting.value
