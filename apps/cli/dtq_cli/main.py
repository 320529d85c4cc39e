"""The program ``dtq``: runs a sub-command, and makes of each error one line and an exit code.

====  =========================================================
0     done
1     refused or failed
2     wrong usage: nothing was tried
130   interrupted with Ctrl-C
====  =========================================================
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from dtq_cli.lost_interrupts import raise_lost_interrupts_again

FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130


class _Report(NamedTuple):
    """What is said about an error, and the exit code."""

    text: str
    code: int


def main() -> None:
    """Run the command line of this process, and exit."""
    raise_lost_interrupts_again()
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command line.

    Args:
        arguments: what follows ``dtq``.

    Returns:
        The exit code.
    """
    try:
        return _dispatch(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        report = _report(error)
        _complain(report.text)
        return report.code


def _dispatch(arguments: Sequence[str]) -> int:
    """Import no more than the command needs: here and not above, so that Ctrl-C is quiet."""
    from dtq_cli.app import build
    from dtq_cli.output import prepare_streams

    prepare_streams()
    code: int | None = build().main(list(arguments), prog_name="dtq", standalone_mode=False)
    sys.stdout.flush()
    return code or 0


def _report(error: Exception) -> _Report:
    from typer import TyperException

    from dtq_core.errors import DtqError, IdempotencyConflictError, InputError

    match error:
        case TyperException():
            return _Report(_usage(error.format_message(), error), error.exit_code)
        case IdempotencyConflictError():
            return _Report(str(error), FAILED)
        case InputError():
            return _Report(str(error), WRONG_USAGE)
        case DtqError():
            return _Report(str(error), FAILED)
        case OSError():
            return _Report(f"{error.strerror or error}", FAILED)
        case _:
            return _Report(
                f"this is a bug of dtq: {type(error).__name__}: {error} "
                "(with PYTHONDEVMODE=1 it tells where)",
                FAILED,
            )


def _usage(message: str, error: Exception) -> str:
    """A usage error, with where to read on; the help itself has no message, it was shown."""
    from dtq_cli.usage import in_plain_words

    context = getattr(error, "ctx", None)
    if not message or context is None:
        return message
    return f"{in_plain_words(message.rstrip('.'))} (see: {context.command_path} --help)"


def _complain(text: str) -> None:
    from dtq_cli.output import note

    with contextlib.suppress(OSError):
        if text:
            note(text)


if __name__ == "__main__":
    main()
