"""Submits the same order twice, as a browser that sends a form again would."""

from tasks import charge

from dtq import Client
from dtq_core.errors import IdempotencyConflictError

with Client() as dtq:
    keyed = charge.options(idempotency_key="order-1001")

    first = dtq.submit(keyed, "1001", 4999)
    again = dtq.submit(keyed, "1001", 4999)
    print("one task:", again.id == first.id, "- marked as a duplicate:", again.duplicate)
    print(again.result(timeout=10))

    try:
        dtq.submit(keyed, "1001", 1)  # the same key, another request
    except IdempotencyConflictError as error:
        print("refused:", error.task_id == first.id)
