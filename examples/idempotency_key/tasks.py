"""A task that must not be queued twice for the same order."""

from dtq import task


@task
async def charge(order: str, cents: int) -> str:
    return f"charged {cents / 100:.2f} for order {order}"
