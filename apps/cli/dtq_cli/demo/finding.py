"""What is found out about one file, and how the demo's workers do it: piece by piece."""

from __future__ import annotations

import codecs
import errno
import hashlib
import os

import msgspec

from dtq_cli.demo.files import Stamp, open_file, stamp_of
from dtq_cli.demo.kinds import HEAD_BYTES, kind_of

_PIECE_BYTES = 262_144


class Finding(msgspec.Struct, frozen=True):
    """What a file holds.

    Attributes:
        kind: of content.
        size: in bytes.
        lines: how many line ends, of text.
        words: how many runs of what is not white space, of text.
        digest: SHA-256 of the content.
        stamp: of the file, once it was read.
    """

    kind: str
    size: int
    lines: int
    words: int
    digest: str
    stamp: Stamp

    @property
    def content(self) -> tuple[str, int, int, int, str]:
        """All but the stamp."""
        return self.kind, self.size, self.lines, self.words, self.digest


def read_in_pieces(path: str, max_bytes: int) -> Finding:
    """Examine a file of any size in little memory.

    Raises:
        OSError: if it cannot be read, or has grown beyond ``max_bytes``.
    """
    with open_file(path) as file:
        tally = _Tally()
        while piece := file.read(_PIECE_BYTES):
            tally.add(piece)
            if tally.size > max_bytes:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return tally.finding(stamp_of(os.fstat(file.fileno())))


class _Tally:
    """What was seen of a file so far."""

    def __init__(self) -> None:
        self.size = 0
        self._head = b""
        self._hash = hashlib.sha256()
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_text = True
        self._in_word = False
        self._lines = 0
        self._words = 0

    def add(self, piece: bytes) -> None:
        self._head += piece[: HEAD_BYTES - len(self._head)]
        self.size += len(piece)
        self._hash.update(piece)
        self._is_text = self._is_text and b"\0" not in piece and self._decodes(piece)
        if self._is_text:
            self._lines += piece.count(b"\n")
            goes_on = self._in_word and not piece[:1].isspace()
            self._words += len(piece.split()) - goes_on
            self._in_word = not piece[-1:].isspace()

    def finding(self, stamp: Stamp) -> Finding:
        is_text = self._is_text and self._decodes(b"", final=True)
        return Finding(
            kind_of(self._head, is_text=is_text),
            self.size,
            self._lines if is_text else 0,
            self._words if is_text else 0,
            self._hash.hexdigest(),
            stamp,
        )

    def _decodes(self, piece: bytes, *, final: bool = False) -> bool:
        try:
            self._decoder.decode(piece, final)
        except UnicodeDecodeError:
            return False
        return True
