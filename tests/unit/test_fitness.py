"""Which servers are refused, and what the refusal says."""

from __future__ import annotations

import pytest

from dtq_core.errors import RedisUnfitError
from dtq_core.fitness import check_layout, check_server
from dtq_core.keyspace import Partitions

FIT = {"redis_version": "7.2.4", "maxmemory_policy": "noeviction"}


@pytest.mark.parametrize("version", ["6.2.0", "6.2.14", "7.0.15", "8.2.3", "10.0.0", "255.255.255"])
def test_a_new_enough_server_is_fit(version: str) -> None:
    check_server({**FIT, "redis_version": version}, eviction_matters=True)


@pytest.mark.parametrize("version", ["6.0.16", "5.0.0", "2.8.24", "6.1.240"])
def test_an_old_server_is_refused_by_version(version: str) -> None:
    with pytest.raises(RedisUnfitError, match=rf"Redis {version} is too old.*6\.2"):
        check_server({**FIT, "redis_version": version}, eviction_matters=False)


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru", "volatile-ttl"])
def test_a_server_that_evicts_is_refused_with_the_remedy(policy: str) -> None:
    info = {**FIT, "maxmemory_policy": policy}
    with pytest.raises(RedisUnfitError, match=r"noeviction.*--allow-eviction"):
        check_server(info, eviction_matters=True)
    check_server(info, eviction_matters=False)


def test_what_the_server_does_not_say_is_not_held_against_it() -> None:
    check_server({}, eviction_matters=True)


def test_another_number_of_partitions_is_refused_with_the_number_to_set() -> None:
    check_layout(Partitions("dtq", 3), b"3")
    with pytest.raises(RedisUnfitError, match="set DTQ_PARTITIONS=3"):
        check_layout(Partitions("dtq", 1), b"3")
