"""What a recurring schedule submits."""

from __future__ import annotations

import msgspec

from dtq_core.cron import CronSchedule
from dtq_core.keyspace import Partitions
from dtq_core.record import Submission, SubmissionForm
from dtq_core.settings import Settings


def submission_of(
    partitions: Partitions,
    settings: Settings,
    name: str,
    schedule: CronSchedule,
    slot_ms: int | None,
) -> Submission:
    """Return the submission of one slot, in the partition of the schedule.

    It has an idempotency key of schedule and slot, so that it can be looked for, and no other task
    can be the same slot's.

    Args:
        partitions: of the deployment.
        settings: of this process.
        name: of the schedule.
        schedule: what it is.
        slot_ms: the slot; None where it is fired by hand, which has no key.

    Raises:
        InputError: for a payload over the limit, or a name that breaks the rule.
    """
    home = partitions.home_of(name)
    options = schedule.options
    if slot_ms is not None:
        key = partitions.key_in(home, f"cron:{name}:{slot_ms}")
        options = msgspec.structs.replace(options, idempotency_key=key)
    form = SubmissionForm(schedule.task, options, settings, slot_ms)
    return form.submission(partitions.new_id_in(home), schedule.payload.encode())
