from __future__ import annotations

from dtq_cli.words import many


def test_one_is_not_many() -> None:
    assert [many(count, "task") for count in (0, 1, 2, 1204)] == [
        *("0 tasks", "1 task", "2 tasks", "1,204 tasks")
    ]
    assert [many(count, "was", "were") for count in (0, 1, 2)] == ["0 were", "1 was", "2 were"]
