"""One face for both clients, so that each test is written once and holds for both."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any

from dtq import AsyncClient, AsyncHandle


class Blocking:
    """A client or handle of the asynchronous face, whose methods block the calling thread."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not inspect.ismethod(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            answer = value(*args, **kwargs)
            if inspect.iscoroutine(answer):
                answer = asyncio.run_coroutine_threadsafe(answer, self._loop).result()
            return self._wrapped(answer)

        return call

    def _wrapped(self, value: Any) -> Any:
        if isinstance(value, AsyncHandle):
            return Blocking(value, self._loop)
        if isinstance(value, list):
            return [self._wrapped(item) for item in value]
        return value


class BlockingClient(Blocking):
    """An :class:`AsyncClient` on an event loop in a thread of its own."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        client = AsyncClient(*args, **settings)
        super().__init__(client, asyncio.new_event_loop())
        self._thread = threading.Thread(target=self._loop.run_forever, name="face", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the client, and at the first call the loop as well."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._inner.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
