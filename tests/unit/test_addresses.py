from __future__ import annotations

import pytest

from dtq_core.addresses import is_loopback, is_open


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_these_are_of_this_machine_only(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "redis", "127.0.0.1.example", "localhost.example", ""]
)
def test_these_may_be_reached_from_elsewhere(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("redis://redis.example", True),
        ("redis://10.0.0.1:6379/0", True),
        ("rediss://user@redis.example", True),
        ("redis://:secret@redis.example", False),
        ("redis://user:secret@10.0.0.1", False),
        ("redis://localhost:6379", False),
        ("redis://[::1]:6379", False),
        ("redis://", False),
        ("unix:///run/redis.sock", False),
    ],
)
def test_p1_a_server_without_a_password_is_open_unless_it_is_here(url: str, found: bool) -> None:
    assert is_open(url) is found
