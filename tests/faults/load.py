"""A stream of tasks of every kind, submitted by a client in a thread of its own."""

from __future__ import annotations

import threading
from types import TracebackType

from dtq_core.errors import DtqError, RedisFullError
from faults.handlers import fail_once, nap
from support.scene import Scene

_PAUSE_S = 0.05


class Load:
    """Submits for as long as the block lasts; an error that reaches it fails the test at the end.

    A full server may refuse: nothing was written then, and the next task is tried.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stopping = threading.Event()
        self._error: DtqError | None = None
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()
        if error is None:
            assert self._error is None, f"an error reached the client: {self._error!r}"

    def _run(self) -> None:
        while not self._stopping.wait(_PAUSE_S):
            try:
                self._round()
            except RedisFullError:
                continue
            except DtqError as error:
                self._error = error
                return

    def _round(self) -> None:
        scene = self._scene
        scene.submit(nap, 0.02)
        scene.submit(nap.options(delay=0.2, band="high"))
        scene.submit(fail_once)
        scene.submit(nap.options(delay=600)).cancel()
