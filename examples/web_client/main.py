"""How a web application submits: one AsyncClient, opened at start-up, shared by all requests.

The requests are plain coroutines here; in a framework they are its handlers, and start_up and
shut_down belong into its lifespan.
"""

import asyncio
from typing import Any

from tasks import make_report

from dtq import AsyncClient
from dtq_core.errors import RedisUnavailableError, ResultTimeoutError, TaskNotFoundError


class App:
    async def start_up(self) -> None:
        self.dtq = AsyncClient(retry_timeout=2)  # a request does not wait longer for Redis

    async def shut_down(self) -> None:
        await self.dtq.close()

    async def post_report(self, year: int) -> tuple[int, Any]:
        try:
            handle = await self.dtq.submit(make_report, year)
        except RedisUnavailableError:
            return 503, "try again later"
        return 202, handle.id

    async def get_report(self, task_id: str) -> tuple[int, Any]:
        try:
            return 200, await self.dtq.result(task_id, timeout=5)
        except ResultTimeoutError:
            return 202, (await self.dtq.get(task_id)).progress
        except TaskNotFoundError:
            return 404, "no such report"


async def main() -> None:
    app = App()
    await app.start_up()
    try:
        accepted = await asyncio.gather(*(app.post_report(year) for year in range(2020, 2025)))
        for _, task_id in accepted:
            print(await app.get_report(task_id))
        print(await app.get_report("0" * 32))
    finally:
        await app.shut_down()


asyncio.run(main())
