"""Shows how a task got to its result, and what is raised where there is none."""

from tasks import fetch_rate

from dtq import Client
from dtq_core.errors import TaskFailedError

with Client() as dtq:
    good, bad = dtq.submit_many(fetch_rate, [("EUR",), ("ZZZ",)])

    print("EUR:", good.result(timeout=30))
    for attempt in good.attempts():
        reason = attempt.error["message"] if attempt.error else ""
        print(f"  attempt {attempt.attempt}: {attempt.outcome} {reason}")

    try:
        bad.result(timeout=30)
    except TaskFailedError as error:
        print("ZZZ:", error.status, "-", error.reason)
