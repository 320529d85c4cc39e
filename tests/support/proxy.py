"""A TCP proxy in front of Redis that loses requests and replies when it is told to.

It reads what clients send as commands, so that a test says which one is hit: the n-th that a
predicate picks. Everything else passes.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from urllib.parse import urlsplit

import hiredis

from dtq_core.scripts import Script

Command = list[bytes]
Picks = Callable[[Command], bool]


class Fault(Enum):
    CUT_REQUEST = "close both sides before the request is passed on"
    CUT_REPLY = "pass the request on, and close both sides instead of passing on the reply"
    DROP_REQUEST = "pass nothing on any more; both sides stay open"
    DROP_REPLY = "pass the request on, and no reply any more; both sides stay open"


def runs(script: Script) -> Picks:
    """Pick the calls of one script, whether by its hash or by its text."""
    known = {script.sha.encode(), script.text.encode()}
    return lambda command: command[0] in {b"EVALSHA", b"EVAL"} and command[1] in known


def is_command(name: str) -> Picks:
    return lambda command: command[0].upper() == name.encode()


class Proxy:
    """Stands in front of one server; a context manager.

    Attributes:
        url: where clients connect.
        hits: how many faults there were.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        self.hits = 0
        self._fault: tuple[Fault, Picks] | None = None
        self._turns = range(0)
        self._picked = 0
        self._lock = threading.Lock()
        self._pairs: list[_Pair] = []
        self._away = False
        self._thread = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self._thread.start()

    def arm(self, fault: Fault, picks: Picks, *, nth: int = 1, times: int = 1) -> None:
        """Have a fault happen to the n-th command from now that is picked, and to those after."""
        with self._lock:
            self._fault, self._turns, self._picked = (fault, picks), range(nth, nth + times), 0

    def go_away(self) -> None:
        """Close every connection, and each new one, until :meth:`come_back`."""
        with self._lock:
            self._away = True
            pairs = list(self._pairs)
        for pair in pairs:
            pair.cut()

    def come_back(self) -> None:
        with self._lock:
            self._away = False

    def fault_for(self, command: Command) -> Fault | None:
        """Say what is to happen to a command; each connection asks."""
        with self._lock:
            if self._fault is None or not self._fault[1](command):
                return None
            self._picked += 1
            if self._picked not in self._turns:
                return None
            self.hits += 1
            return self._fault[0]

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.go_away()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for pair in self._pairs:
            pair.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if not self._away and (server := _connect(self._target)) is not None:
                    self._pairs.append(_Pair(client, server, self))
                else:
                    client.close()


class _Pair:
    """One client's connection and ours to the server, each read by a thread."""

    def __init__(self, client: socket.socket, server: socket.socket, proxy: Proxy) -> None:
        self._client = client
        self._server = server
        self._proxy = proxy
        self._on_reply: Fault | None = None
        self._threads = [
            threading.Thread(target=self._run, args=(work,), name="proxy", daemon=True)
            for work in (self._pass_requests, self._pass_replies)
        ]
        for thread in self._threads:
            thread.start()

    def cut(self) -> None:
        for side in (self._client, self._server):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the sockets back, after both threads have ended: nobody else gets their numbers."""
        self.cut()
        for thread in self._threads:
            thread.join()
        self._client.close()
        self._server.close()

    def _run(self, work: Callable[[], None]) -> None:
        with contextlib.suppress(OSError):
            work()
        self.cut()

    def _pass_requests(self) -> None:
        reader = hiredis.Reader()
        while data := self._client.recv(65_536):
            reader.feed(data)
            while (command := reader.gets()) is not False:
                if not self._pass_request(command):
                    return

    def _pass_request(self, command: Command) -> bool:
        """Pass a command on, unless a fault takes it; False ends the connection."""
        fault = self._proxy.fault_for(command)
        if fault is Fault.CUT_REQUEST:
            return False
        if fault is Fault.DROP_REQUEST:
            while self._client.recv(65_536):
                pass
            return False
        if fault is not None:
            self._on_reply = fault
        self._server.sendall(hiredis.pack_command(tuple(command)))
        return True

    def _pass_replies(self) -> None:
        while data := self._server.recv(65_536):
            if self._on_reply is Fault.CUT_REPLY:
                return
            if self._on_reply is None:
                self._client.sendall(data)


def _connect(url: str) -> socket.socket | None:
    parts = urlsplit(url)
    unix = parts.scheme == "unix"
    side = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
    try:
        side.connect(parts.path if unix else (parts.hostname, parts.port))
    except OSError:
        side.close()
        return None
    return side
