"""Which files of a folder are examined, and how one is opened and named safely.

A name is bytes, and need not be text: it travels percent-encoded, as in a URL. A path that was a
plain file a moment ago can be anything now: it is opened so that nothing blocks and no link is
followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from dtq_cli.output import escape
from dtq_core.errors import InputError

IGNORED_FOLDERS = frozenset(
    {
        ".dtq",
        ".git",
        ".hg",
        ".hypothesis",
        ".import_linter_cache",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".svn",
        ".tox",
        ".venv",
        "__pycache__",
        "node_modules",
    }
)
"""Folders of tools: large, or written to while the demo runs."""

_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FolderError(InputError):
    """The folder cannot be examined."""


class Stamp(NamedTuple):
    """What changes when a file does: its size, and the times in ns of its content and inode."""

    size: int
    mtime_ns: int
    ctime_ns: int


class File(NamedTuple):
    """One file as it was found."""

    path: str
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is to examine.

    Attributes:
        root: the folder, absolute.
        files: in the order of their paths, folder by folder.
        left_out: how many were passed over, by reason.
        capped: whether there are more than were asked for.
    """

    root: str
    files: list[File]
    left_out: dict[str, int]
    capped: bool


def survey(root: str, limit: int, max_bytes: int) -> Survey:
    """Look through a folder and all below it, on its own file system.

    Args:
        root: the folder.
        limit: how many files at most.
        max_bytes: the largest file.

    Raises:
        FolderError: if it is no folder, cannot be read, or holds no real files at all.
    """
    try:
        absolute = os.path.abspath(root)
        with os.scandir(absolute):
            pass
        if os.statvfs(absolute).f_blocks == 0:
            raise FolderError(f"{escape(root)} is virtual, such as /proc: choose one of real files")
        walk = _Walk(os.stat(absolute).st_dev, limit, max_bytes)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FolderError(f"cannot examine {escape(root)}: {reason}") from None
    walk.run(absolute)
    return Survey(absolute, walk.files, dict(walk.left_out), walk.full)


@dataclass(slots=True)
class _Walk:
    device: int
    limit: int
    max_bytes: int
    files: list[File] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    full: bool = False
    _folders: list[str] = field(default_factory=list)

    def run(self, root: str) -> None:
        self._folders = [root]
        while self._folders and not self.full:
            try:
                with os.scandir(self._folders.pop()) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError:
                self.left_out["unreadable folders"] += 1
                continue
            self._look_at(entries)

    def _look_at(self, entries: list[os.DirEntry[str]]) -> None:
        below = len(self._folders)
        for entry in entries:
            try:
                self._sort(entry, entry.stat(follow_symlinks=False))
            except OSError:
                self.left_out["gone at once"] += 1
            if self.full:
                return
        self._folders[below:] = reversed(self._folders[below:])

    def _sort(self, entry: os.DirEntry[str], found: os.stat_result) -> None:
        if stat.S_ISLNK(found.st_mode):
            self.left_out["links"] += 1
        elif stat.S_ISDIR(found.st_mode):
            self._sort_folder(entry, found.st_dev)
        elif not stat.S_ISREG(found.st_mode):
            self.left_out["pipes, sockets and devices"] += 1
        elif found.st_size > self.max_bytes:
            self.left_out["files too large"] += 1
        elif len(self.files) == self.limit:
            self.full = True
        else:
            self.files.append(File(entry.path, stamp_of(found)))

    def _sort_folder(self, entry: os.DirEntry[str], device: int) -> None:
        if entry.name in IGNORED_FOLDERS:
            self.left_out["folders of tools"] += 1
        elif device != self.device:
            self.left_out["folders on other file systems"] += 1
        else:
            self._folders.append(entry.path)


def stamp_of(found: os.stat_result) -> Stamp:
    """Return the stamp of a file."""
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def open_file(path: str) -> BinaryIO:
    """Open a plain file for reading.

    Raises:
        OSError: if it cannot be read, or is no plain file any more.
    """
    fd = os.open(path, _OPEN_FLAGS)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a plain file any more")
    return os.fdopen(fd, "rb")


def encode_path(path: str) -> str:
    """Return a path in the form in which it travels."""
    return quote_from_bytes(os.fsencode(path))


def decode_path(text: str) -> str:
    """Return the path that travelled as a text."""
    return os.fsdecode(unquote_to_bytes(text))
