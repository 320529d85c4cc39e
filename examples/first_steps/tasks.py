import asyncio

from dtq import Context, exponential, task


@task(max_attempts=5, retry=exponential(base=1, cap=60), timeout=30)
async def send_welcome(ctx: Context, user_id: int) -> str:
    await asyncio.sleep(0.1)  # here you would call a mail service
    return f"user {user_id} was welcomed on attempt {ctx.attempt}"
