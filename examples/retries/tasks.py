"""A handler that says which failures are worth another attempt, and how long to wait."""

from dtq import Context, GiveUp, Retry, exponential, task


@task(
    max_attempts=5,
    retry=exponential(base=0.2, cap=5),
    retry_on=(ConnectionError, TimeoutError),
    timeout=10,
)
async def fetch_rate(ctx: Context, currency: str) -> float:
    if currency == "ZZZ":
        raise GiveUp("there is no such currency")  # no further attempt can help
    if ctx.attempt == 1:
        raise ConnectionError("connection reset")  # tried again after 0.1 to 0.2 s
    if ctx.attempt == 2:
        raise Retry(after=0.5, reason="asked to come back later")  # after 0.5 s, no jitter
    return 1.08
