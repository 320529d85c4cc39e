"""Producers: they submit tasks of many kinds, and cancel some."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from chaos import handlers
from dtq import CancelAnswer, Client
from dtq_core.clock import mono_s
from dtq_core.errors import RedisError

RATE = 40
"""Tasks a second of one producer."""
_RETRY_S = 2.0

_KINDS: list[tuple[int, Callable[[random.Random], tuple[Any, ...]]]] = [
    (55, lambda _: (handlers.quick,)),
    (15, lambda chance: (handlers.sleep, chance.uniform(0, 2))),
    (10, lambda chance: (handlers.doze, chance.uniform(0, 1))),
    (8, lambda _: (handlers.fail_once,)),
    (6, lambda chance: (handlers.quick.options(delay=chance.uniform(0, 3)),)),
    (2, lambda _: (handlers.quick.options(delay=5, ttl=0.5),)),
    (4, lambda chance: (handlers.quick.options(idempotency_key=f"{chance.random():.2f}"),)),
]
"""How often, and what is submitted."""
_CANCELS = 0.04


class Producer(threading.Thread):
    """Submits until it is told to stop.

    Attributes:
        accepted: the ids of the tasks that were accepted.
        cancelled: when it was told that a task is cancelled, monotonic, by its id.
        unsure: how many submissions ended in an error: those may have been accepted or not.
        error: what ended it, if anything did.
    """

    def __init__(self, url: str, prefix: str, seed: int) -> None:
        super().__init__(name="producer", daemon=True)
        self.accepted: list[str] = []
        self.cancelled: dict[str, float] = {}
        self.unsure = 0
        self.error: Exception | None = None
        self._client = Client(url, prefix=prefix, retry_timeout=_RETRY_S)
        self._chance = random.Random(seed)
        self._told_to_stop = threading.Event()

    def run(self) -> None:
        weights = [weight for weight, _ in _KINDS]
        try:
            while not self._told_to_stop.wait(1 / RATE):
                [(_, make)] = self._chance.choices(_KINDS, weights)
                cancels = self._chance.random() < _CANCELS
                try:
                    self._submit(make(self._chance), cancels=cancels)
                except RedisError:
                    self.unsure += 1
        except Exception as error:
            self.error = error
        finally:
            self._client.close()

    def stop(self) -> None:
        """Stop, and wait for the last submission."""
        self._told_to_stop.set()
        self.join()
        if self.error is not None:
            raise self.error

    def _submit(self, call: tuple[Any, ...], *, cancels: bool) -> None:
        handle = self._client.submit(*call)
        self.accepted.append(handle.id)
        if cancels and handle.cancel("by chance") is CancelAnswer.CANCELLED:
            self.cancelled[handle.id] = mono_s()
