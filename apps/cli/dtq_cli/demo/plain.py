"""The same files again without a queue: one after the other, each read whole, by other code.

It shares with the workers how a file is opened and the table of signatures, and nothing else.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

from dtq_cli.demo.files import File, open_file, stamp_of
from dtq_cli.demo.finding import Finding
from dtq_cli.demo.kinds import HEAD_BYTES, kind_of

_BLANKS = b" \t\n\r\x0b\x0c"
_MARKS = bytes(ord(" ") if byte in _BLANKS else ord("x") for byte in range(256))


def read_plainly(files: Iterable[File], max_bytes: int) -> list[Finding | str]:
    """Examine files; of one that cannot be read, there is the reason."""
    return [_read(file.path, max_bytes) for file in files]


def _read(path: str, max_bytes: int) -> Finding | str:
    try:
        with open_file(path) as file:
            data = file.read(max_bytes + 1) or b""
            stamp = stamp_of(os.fstat(file.fileno()))
    except OSError as error:
        return str(error.strerror)
    if len(data) > max_bytes:
        return "it has grown too large"
    lines, words = _count(data) if (is_text := _is_text(data)) else (0, 0)
    kind = kind_of(data[:HEAD_BYTES], is_text=is_text)
    return Finding(kind, len(data), lines, words, hashlib.sha256(data).hexdigest(), stamp)


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        return False


def _count(data: bytes) -> tuple[int, int]:
    marks = data.translate(_MARKS)
    return data.count(b"\n"), marks.count(b" x") + marks.startswith(b"x")
