import asyncio, sys
async def test_stop_at_once(stage):
    @stage.task
    async def f() -> None: ...
    async def dump():
        await asyncio.sleep(3)
        for t in asyncio.all_tasks():
            t.print_stack(file=sys.stdout)
    asyncio.create_task(dump())
    for i in range(100):
        t = asyncio.get_running_loop().time()
        async with stage.worker():
            for _ in range(i):
                await asyncio.sleep(0)
            pass
        print(i, asyncio.get_running_loop().time() - t)
