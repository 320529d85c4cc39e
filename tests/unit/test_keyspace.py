"""Keys, partitions, and ids that carry their partition."""

from __future__ import annotations

import pytest

from dtq_core.errors import InvalidNameError, InvalidOptionError, TaskNotFoundError
from dtq_core.keyspace import Keyspace, Partitions, bands_of


def test_one_partition_has_the_plain_prefix_and_several_have_a_slot_each() -> None:
    assert [keys.prefix for keys in Partitions("dtq", 1).all] == ["dtq"]
    assert [keys.prefix for keys in Partitions("dtq", 2).all] == ["dtq:{p0}", "dtq:{p1}"]


def test_an_id_leads_to_its_partition() -> None:
    partitions = Partitions("dtq", 3)
    ids = [partitions.new_id() for _ in range(200)]
    assert len(set(ids)) == 200
    assert {partitions.of(task_id).index for task_id in ids} == {0, 1, 2}
    assert all(len(task_id) == 32 for task_id in ids)


def test_ids_are_sorted_by_the_time_they_were_made() -> None:
    partitions = Partitions()
    ids = [partitions.new_id() for _ in range(1000)]
    assert sorted(ids, key=lambda task_id: task_id[:12]) == ids


def test_an_idempotency_key_always_chooses_the_same_partition() -> None:
    partitions = Partitions("dtq", 7)
    chosen = {partitions.of(partitions.new_id("order-42")).index for _ in range(50)}
    assert len(chosen) == 1
    spread = {partitions.of(partitions.new_id(f"order-{n}")).index for n in range(200)}
    assert spread == set(range(7))


@pytest.mark.parametrize(
    "task_id", ["", "x", "0" * 31, "0" * 33, "G" * 32, "0" * 31 + "\n", "A" * 32, None, 7]
)
def test_what_is_no_id_is_refused(task_id: object) -> None:
    with pytest.raises(InvalidNameError, match="not a task id"):
        Partitions().of(task_id)  # type: ignore[arg-type]


def test_an_id_of_a_partition_that_is_not_here_is_an_unknown_task() -> None:
    with pytest.raises(TaskNotFoundError):
        Partitions("dtq", 3).of("0" * 28 + "0003")


def test_a_bad_layout_is_refused() -> None:
    with pytest.raises(InvalidNameError):
        Partitions("a:b")
    with pytest.raises(InvalidOptionError):
        Partitions("dtq", 0)


def test_no_two_names_share_a_key() -> None:
    keys = Keyspace("dtq")
    made = [keys.stream("a", "low"), keys.wake("a"), keys.stats("a"), keys.worker("a")]
    made += [keys.task("a"), keys.result("a"), keys.attempts("a"), keys.done("a")]
    made += [keys.idempotency("a"), keys.retry_schedule, keys.delay_schedule, keys.expiry]
    made += [keys.events, keys.dlq, keys.queues, keys.workers, keys.leader, Partitions().meta]
    assert len(set(made)) == len(made)


def test_every_band_of_every_queue() -> None:
    assert bands_of(["a", "b"])[:5] == [
        ("a", "critical"),
        ("a", "high"),
        ("a", "normal"),
        ("a", "low"),
        ("b", "critical"),
    ]
