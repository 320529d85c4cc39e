"""One child process, as its supervisor sees it: started, told to stop, listened to, waited for."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator

import msgspec
import structlog

from dtq_core.failpoints import reach
from dtq_worker.child import REFUSAL, SUSPECTS_WAIT, Orders

_log = structlog.get_logger("dtq.supervisor")

_READ_BYTES = 65_536
_KILL_HURRIED_AFTER_S = 1.5
"""How long a child may live once it was told to hurry."""


class Child:
    """A worker process and the line to it.

    Attributes:
        refusal: why it could not start, once it has said so.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        line: socket.socket,
        on_suspects: Callable[[], None],
    ) -> None:
        self.refusal: str | None = None
        self._process = process
        self._line = line
        self._on_suspects = on_suspects
        self._heard = bytearray()
        line.setblocking(False)

    @classmethod
    async def start(cls, on_suspects: Callable[[], None]) -> Child:
        """Start one; it waits for its orders.

        Args:
            on_suspects: called when it says that tasks wait for a process of their own.

        Raises:
            OSError: if no process or memory is to be had now.
        """
        reach("spawn.before")
        line, its_end = socket.socketpair()
        with its_end:
            try:
                with _ctrl_c_blocked():
                    process = await asyncio.create_subprocess_exec(
                        sys.executable, "-m", "dtq_worker.child", stdin=its_end.fileno()
                    )
            except BaseException:
                line.close()
                raise
        reach("spawn.after")
        return cls(process, line, on_suspects)

    async def give(self, orders: Orders) -> None:
        """Send the orders; its exit code tells if it died at once."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._line, self._listen)
        with contextlib.suppress(OSError):
            await loop.sock_sendall(self._line, msgspec.json.encode(orders) + b"\n")
        reach("orders.after")

    def stop(self, *, hurry: bool) -> None:
        """Tell it to stop. A signal ends it even before it listens; two signals may become one."""
        self._signal(signal.SIGTERM)
        if hurry:
            with contextlib.suppress(OSError):
                self._line.send(b"!")

    async def ended(self, stopping: asyncio.Event, hurry: asyncio.Event, grace_s: float) -> int:
        """Wait for its end.

        Args:
            stopping: set once it was told to stop.
            hurry: set once it was told to hurry.
            grace_s: after so long a stopping child is killed; a hurried one much sooner.

        Returns:
            Its exit code.
        """
        ended = asyncio.create_task(self._process.wait())
        await _first(ended, stopping)
        await _first(ended, hurry, grace_s)
        if hurry.is_set():
            await asyncio.wait([ended], timeout=_KILL_HURRIED_AFTER_S)
        if not ended.done():
            _log.error("a worker process does not stop and is killed", pid=self._process.pid)
            self._signal(signal.SIGKILL)
        code = await ended
        self._listen()  # to its last words
        return code

    def close(self) -> None:
        """Close the line."""
        asyncio.get_running_loop().remove_reader(self._line)
        self._line.close()

    def _listen(self) -> None:
        try:
            heard = self._line.recv(_READ_BYTES)
        except OSError:
            heard = b""
        if not heard:
            asyncio.get_running_loop().remove_reader(self._line)
        self._heard += heard
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            if line == SUSPECTS_WAIT:
                self._on_suspects()
            elif line.startswith(REFUSAL):
                self.refusal = line.removeprefix(REFUSAL).decode("utf-8", "replace")

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal; ``send_signal`` may take away the exit code that asyncio waits for."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)


async def _first(
    task: asyncio.Task[int], event: asyncio.Event, limit_s: float | None = None
) -> None:
    """Wait for a task or an event, whichever is first."""
    happening = asyncio.create_task(event.wait())
    await asyncio.wait([task, happening], timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
    happening.cancel()


@contextlib.contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """A process started meanwhile hears no Ctrl-C until it says what to do about it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
