"""A program that submits tasks, and is killed on its way.

Its arguments: ``Client`` or ``AsyncClient``; ``each``, ``many``, ``keyed`` or ``cancel``, which
cancels each at once; how many; and a file to which it appends the id of each accepted task.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from typing import Any, TextIO

import dtq
from crash.handlers import work


async def main(face: str, way: str, count: int, accepted: TextIO) -> None:
    client = getattr(dtq, face)()
    if way == "many":
        handles = await answer(client.submit_many(work, [(number,) for number in range(count)]))
        print(*(handle.id for handle in handles), sep="\n", file=accepted)
    for number in range(count if way != "many" else 0):
        key = f"order-{number}" if way == "keyed" else None
        handle = await answer(client.submit(work.options(idempotency_key=key), number))
        print(handle.id, file=accepted, flush=True)
        if way == "cancel":
            await answer(handle.cancel())
    await answer(client.close())


async def answer(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


if __name__ == "__main__":
    with open(sys.argv[4], "a") as accepted:
        asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), accepted))
