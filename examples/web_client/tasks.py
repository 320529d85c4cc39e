"""Work that is too slow for a request."""

import time

from dtq import Context, task


@task(timeout=60)
def make_report(ctx: Context, year: int) -> str:
    for part in range(4):
        time.sleep(0.05)
        ctx.progress((part + 1) / 4)
    return f"the report of {year}"
