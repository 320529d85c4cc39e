"""HTTP as uvicorn speaks it, with the limits that it lacks.

They are on how long the head of a request may be, how long it may take to come, and how long a
client may take to read.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 32_768
_ERROR = (
    b"HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\n"
    b"Connection: close\r\n\r\n%s"
)


class LimitedProtocol(HttpToolsProtocol):
    """One connection.

    Attributes:
        read_timeout_s: how long the head of a request may take to come, in seconds; set on a
            subclass.
    """

    read_timeout_s: float

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._unparsed_bytes = 0
        self._head_bytes = 0
        self._in_head = True
        self._refused = False
        self._cut: asyncio.TimerHandle | None = None
        self._write_cut: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop(self._cut)
        self._stop(self._write_cut)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; nothing more of a connection that was refused."""
        if self._refused:
            return
        if self._in_head:
            self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._unparsed_bytes > MAX_HEAD_BYTES:
            self._refuse(431, b"Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """Note that the head of a request begins."""
        self._in_head = True
        self._head_bytes = 0
        if self._cut is None:
            self._wait_for_head()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Count the address."""
        self._head_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header."""
        self._head_bytes += len(name) + len(value)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Note that the head has come; begin to answer unless it is too long."""
        self._in_head = False
        self._unparsed_bytes = 0
        self._stop(self._cut)
        self._cut = None
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(431, b"Request Header Fields Too Large")
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body, unless its request was refused."""
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Note the end of a body, unless its request was refused."""
        if not self._refused:
            super().on_message_complete()

    def pause_writing(self) -> None:
        """Cut off a client that does not read, once it has had its time."""
        self._write_cut = self.loop.call_later(self.read_timeout_s, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on writing."""
        self._stop(self._write_cut)
        self._write_cut = None
        super().resume_writing()

    def _wait_for_head(self) -> None:
        self._cut = self.loop.call_later(self.read_timeout_s, self._refuse, 408, b"Request Timeout")

    def _refuse(self, status: int, phrase: bytes) -> None:
        self._refused = True
        name = phrase.lower().replace(b" ", b"-")
        text = b'{"type":"urn:dtq:problem:%s","title":"%s","status":%d,"detail":"%s"}' % (
            name,
            phrase,
            status,
            phrase,
        )
        self.transport.write(_ERROR % (status, phrase, len(text), text))
        self.transport.close()

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()
