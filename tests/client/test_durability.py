"""Acceptance that is durable: confirmed by a replica or the disk, or an error that says unknown."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from client.tasks import add
from dtq import OutcomeUnknownError
from dtq_core import embedded
from dtq_core.embedded import TemporaryServer, start_temporary
from dtq_core.errors import (
    IdempotencyConflictError,
    RedisDeniedError,
    RedisUnavailableError,
    RedisUnfitError,
    RedisUnreachableError,
)
from dtq_core.scripts import SUBMIT
from dtq_core.settings import Settings
from support.eventually import eventually
from support.hand import Hand
from support.proxy import Fault, Proxy, runs

MakeHand = Callable[[Settings], Hand]
WITHOUT_WAITAOF = "/usr/bin/redis-server"
SOON_S = 0.3
"""A time-out of what is never confirmed."""
NO_SNAPSHOT_DELAY = ("--repl-diskless-sync-delay", "0")


class Site:
    """A primary and its replica, and what a test does to them."""

    def __init__(self, stack: ExitStack, settings: Settings, make_hand: MakeHand) -> None:
        start = lambda *config: stack.enter_context(  # noqa: E731
            start_temporary(port=None, config=[*NO_SNAPSHOT_DELAY, *config])
        )
        self.primary: TemporaryServer = start()
        port = self.primary.url.rpartition(":")[2].partition("/")[0]
        self.replica: TemporaryServer = start("--replicaof", "127.0.0.1", port)
        self.hand = make_hand(replace(settings, redis_url=self.primary.url))
        self.heir = make_hand(replace(settings, redis_url=self.replica.url))
        eventually("a replica that is up to date", self.is_in_step)

    def is_in_step(self) -> bool:
        self.hand.command("SET", "now", 1)
        return bool(self.hand.command("WAIT", 1, 100) == 1)

    def freeze(self) -> None:
        os.kill(self.replica.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.replica.pid, signal.SIGCONT)

    def fail_over(self) -> None:
        self.primary.kill()
        self.heir.command("REPLICAOF", "NO", "ONE")


@pytest.fixture
def site(settings: Settings, make_hand: MakeHand) -> Iterator[Site]:
    with ExitStack() as stack:
        made = Site(stack, settings, make_hand)
        yield made
        made.thaw()


@contextmanager
def old_server(persistence: str, *config: str) -> Iterator[TemporaryServer]:
    """A server without WAITAOF."""
    if not os.access(WITHOUT_WAITAOF, os.X_OK):
        pytest.skip("no Redis of an older version is installed")
    with start_temporary(
        redis_server=WITHOUT_WAITAOF, persistence=persistence, port=None, config=config
    ) as server:
        if tuple(map(int, server.version.split(".")[:2])) >= (7, 2):
            pytest.skip("the installed Redis is not of an older version")
        yield server


def hasty(make_client: Any, url: str, level: str, **settings: Any) -> Any:
    """A client that has found its server fit, and gives a confirmation little time."""
    client = make_client(url, **{"durability_timeout": SOON_S, **settings})
    with suppress(OutcomeUnknownError):  # the machine may be busy
        client.submit(add.options(durability=level), 0)
    return client


def kept(hand: Hand, ids: list[str]) -> bool:
    return sorted(hand.entries()) == sorted(ids)


# Replica


def test_what_a_replica_confirmed_is_there_and_runs_after_the_primary_died(
    make_client: Any, site: Site
) -> None:
    client = make_client(site.primary.url, durability="replica")
    handles = [client.submit(add, number) for number in range(20)]
    handles += client.submit_many(add, [(number,) for number in range(600)])
    handles.append(client.submit_by_name("add", [1], idempotency_key="k"))
    site.fail_over()
    assert kept(site.heir, [handle.id for handle in handles])
    site.heir.run_all(len(handles))


def test_a_frozen_replica_confirms_nothing_and_the_same_again_is_one_task(
    make_client: Any, site: Site
) -> None:
    client = hasty(make_client, site.primary.url, "replica", durability="replica")
    before = site.hand.entries()
    keyed = add.options(idempotency_key="k")
    site.freeze()
    with pytest.raises(OutcomeUnknownError, match="no replica said in time") as unknown:
        client.submit(keyed, 1)
    with pytest.raises(OutcomeUnknownError) as repeated:
        client.submit(keyed, 1)
    assert repeated.value.task_ids == unknown.value.task_ids
    site.thaw()
    eventually("the replica to be back", site.is_in_step)
    handle = make_client(site.primary.url, durability="replica").submit(keyed, 1)
    assert unknown.value.task_ids == (handle.id,)
    site.fail_over()
    assert kept(site.heir, [*before, handle.id])


def test_what_another_submitted_is_confirmed_by_whoever_finds_it(
    make_client: Any, site: Site
) -> None:
    """The script writes nothing then."""
    client = hasty(make_client, site.primary.url, "replica", durability="replica")
    keyed = add.options(idempotency_key="k")
    site.freeze()
    make_client(site.primary.url).submit(keyed, 1)
    with pytest.raises(OutcomeUnknownError):
        client.submit(keyed, 1)
    site.thaw()
    assert make_client(site.primary.url, durability="replica").submit(keyed, 1).duplicate


def test_a_key_of_another_request_is_a_conflict_though_nothing_is_confirmed(
    make_client: Any, site: Site
) -> None:
    client = hasty(make_client, site.primary.url, "replica", durability="replica")
    make_client(site.primary.url).submit(add.options(idempotency_key="k"), 1)
    site.freeze()
    with pytest.raises(IdempotencyConflictError):
        client.submit(add.options(idempotency_key="k"), 2)


def test_the_wait_may_be_longer_than_a_command_may_take(make_client: Any, site: Site) -> None:
    """An error that says unknown, not a lost connection that is tried again."""
    limits = {"connect_timeout": SOON_S, "durability_timeout": 3 * SOON_S}
    client = hasty(make_client, site.primary.url, "replica", durability="replica", **limits)
    site.freeze()
    with pytest.raises(OutcomeUnknownError, match="no replica said in time"):
        client.submit(add, 1)


def test_each_submission_chooses_for_itself(make_client: Any, site: Site) -> None:
    client = hasty(make_client, site.primary.url, "replica")
    site.freeze()
    client.submit(add, 1)
    client.submit(add.options(durability="memory"), 2)
    with pytest.raises(OutcomeUnknownError):
        client.submit_by_name("add", [4], durability="replica")
    with pytest.raises(OutcomeUnknownError) as unknown:
        client.submit_many(add.options(durability="replica"), [(5,), (6,)])
    assert len(unknown.value.task_ids) == 2


# Disk


@pytest.fixture(scope="module")
def new_server() -> Iterator[TemporaryServer]:
    """A server that has WAITAOF, and may be hurt."""
    program = embedded._bundled_server()
    assert program is not None
    with start_temporary(redis_server=program, persistence="everysec", port=None) as server:
        yield server


@pytest.fixture
def new_hand(settings: Settings, make_hand: MakeHand, new_server: TemporaryServer) -> Hand:
    return make_hand(replace(settings, redis_url=new_server.url))


def test_what_the_disk_confirmed_is_there_after_the_server_was_killed(
    make_client: Any, new_server: TemporaryServer, new_hand: Hand
) -> None:
    client = make_client(new_server.url, durability="disk")
    handles = client.submit_many(add, [(number,) for number in range(600)])
    handles.append(client.submit_by_name("add", [1], idempotency_key="k"))
    new_server.kill()
    new_server.restart()
    assert kept(new_hand, [handle.id for handle in handles])
    assert client.submit(add.options(idempotency_key="k"), 1).duplicate


def test_a_disk_that_is_not_synced_confirms_nothing_until_it_is(
    make_client: Any, new_server: TemporaryServer, new_hand: Hand
) -> None:
    client = hasty(make_client, new_server.url, "disk", durability="disk")
    before = new_hand.entries()
    keyed = add.options(idempotency_key="k")
    new_hand.command("CONFIG", "SET", "appendfsync", "no")
    try:
        for _ in range(2):  # the second time it is a duplicate
            with pytest.raises(OutcomeUnknownError, match="the disk did not have it") as unknown:
                client.submit(keyed, 1)
    finally:
        new_hand.command("CONFIG", "SET", "appendfsync", "always")
    handle = make_client(new_server.url, durability="disk").submit(keyed, 1)
    assert unknown.value.task_ids == (handle.id,)
    assert kept(new_hand, [*before, handle.id])


def test_a_file_that_is_closed_meanwhile_confirms_nothing(
    make_client: Any, new_server: TemporaryServer, new_hand: Hand
) -> None:
    client = make_client(new_server.url, durability="disk")
    client.submit(add, 0)
    new_hand.command("CONFIG", "SET", "appendonly", "no")
    try:
        with pytest.raises(OutcomeUnknownError, match="appendonly is disabled"):
            client.submit(add, 1)
    finally:
        new_hand.command("CONFIG", "SET", "appendonly", "yes")


def test_an_old_server_that_syncs_before_it_replies_confirms_as_long_as_it_does(
    make_client: Any, settings: Settings, make_hand: MakeHand
) -> None:
    with old_server("always") as server:
        hand = make_hand(replace(settings, redis_url=server.url))
        client = make_client(server.url, durability="disk")
        handles = [client.submit(add, 0), *client.submit_many(add, [(1,), (2,)])]
        server.kill()
        server.restart()
        assert kept(hand, [handle.id for handle in handles])
        hand.command("CONFIG", "SET", "appendfsync", "everysec")
        with pytest.raises(OutcomeUnknownError, match="was changed"):
            client.submit(add, 3)


# Refused before anything is written


def untouched(hand: Hand) -> bool:
    found: list[bytes] = hand.command("KEYS", f"{hand.store.partitions.prefix}*")
    return found == []


@pytest.mark.parametrize(
    ("persistence", "config"),
    [("everysec", ()), ("always", ("--no-appendfsync-on-rewrite", "yes")), ("no", ())],
)
def test_an_old_server_that_syncs_later_or_never_is_refused(
    make_client: Any,
    settings: Settings,
    make_hand: MakeHand,
    persistence: str,
    config: tuple[str, ...],
) -> None:
    with old_server(persistence, *config) as server:
        client = make_client(server.url, durability="disk")
        with pytest.raises(RedisUnfitError, match=r"no WAITAOF .* appendfsync always"):
            client.submit(add, 1)
        assert untouched(make_hand(replace(settings, redis_url=server.url)))


def test_a_server_without_a_file_is_refused(
    make_client: Any, new_server: TemporaryServer, new_hand: Hand
) -> None:
    new_hand.command("CONFIG", "SET", "appendonly", "no")
    try:
        with pytest.raises(RedisUnfitError, match="writes no append-only file"):
            make_client(new_server.url).submit_many(add.options(durability="disk"), [(1,)])
    finally:
        new_hand.command("CONFIG", "SET", "appendonly", "yes")
    assert untouched(new_hand)


def test_a_server_without_replicas_is_refused(client: Any, hand: Hand) -> None:
    with pytest.raises(RedisUnfitError, match="no replica is connected"):
        client.submit(add.options(durability="replica"), 1)
    assert untouched(hand)


@contextmanager
def without(hand: Hand, right: str) -> Iterator[str]:
    """A URL of a user who may do all but one thing."""
    hand.command("ACL", "SETUSER", "few", "reset", "on", ">pw", "~*", "&*", "+@all", f"-{right}")
    try:
        yield str(hand.store.settings.redis_url).replace("://", "://few:pw@", 1)
    finally:
        hand.command("ACL", "DELUSER", "few")


def test_whoever_may_not_wait_is_refused(make_client: Any, hand: Hand, new_hand: Hand) -> None:
    for level, right, server in (("replica", "wait", hand), ("disk", "waitaof", new_hand)):
        with without(server, right) as url, pytest.raises(RedisDeniedError, match=right):
            make_client(url).submit(add.options(durability=level), 1)
        assert untouched(server)


def test_whoever_may_not_ask_an_old_server_how_it_syncs_is_refused(
    make_client: Any, settings: Settings, make_hand: MakeHand
) -> None:
    with old_server("always") as server:
        hand = make_hand(replace(settings, redis_url=server.url))
        with without(hand, "config") as url, pytest.raises(RedisDeniedError, match="config"):
            make_client(url).submit(add.options(durability="disk"), 1)
        assert untouched(hand)


def test_without_the_right_to_info_the_wait_itself_tells(
    make_client: Any, hand: Hand, site: Site
) -> None:
    with without(site.hand, "info") as url:
        assert make_client(url).submit(add.options(durability="replica"), 1).id
    with without(hand, "info") as url:
        client = make_client(url, durability="replica", durability_timeout=SOON_S)
        with pytest.raises(OutcomeUnknownError):
            client.submit(add, 1)


# No answer


@pytest.fixture
def proxy(settings: Settings) -> Iterator[Proxy]:
    assert settings.redis_url is not None
    with Proxy(settings.redis_url) as made:
        yield made


@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.name)
def test_a_submission_that_was_sent_and_never_answered_is_unknown(
    make_client: Any, hand: Hand, proxy: Proxy, fault: Fault
) -> None:
    client = make_client(proxy.url, connect_timeout=0.15, retry_timeout=0.3)
    first = client.submit(add, 0)  # the script is loaded
    proxy.arm(fault, runs(SUBMIT), times=1_000)
    with pytest.raises(OutcomeUnknownError, match="the outcome is unknown") as unknown:
        client.submit_many(add, [(1,), (2,)])
    arrived = fault in {Fault.CUT_REPLY, Fault.DROP_REPLY}
    assert len(unknown.value.task_ids) == 2
    assert kept(hand, [first.id, *(unknown.value.task_ids if arrived else ())])


def test_it_stays_unknown_though_nobody_can_be_reached_afterwards(
    make_client: Any, hand: Hand, settings: Settings
) -> None:
    assert settings.redis_url is not None
    with Proxy(settings.redis_url) as proxy:
        client = make_client(proxy.url, retry_timeout=0)
        client.submit(add, 0)
        proxy.arm(Fault.CUT_REPLY, runs(SUBMIT), times=1_000)
        with pytest.raises(OutcomeUnknownError) as unknown:
            client.submit(add.options(idempotency_key="k"), 1)
    again = make_client().submit(add.options(idempotency_key="k"), 1)
    assert again.duplicate
    assert unknown.value.task_ids == (again.id,)


def test_what_was_never_sent_is_not_unknown(make_client: Any, own_server: TemporaryServer) -> None:
    client = make_client(own_server.url, retry_timeout=0.2)
    client.submit(add, 0)
    own_server.kill()
    with pytest.raises(RedisUnavailableError) as stale:  # the idle connection may have been sent on
        client.submit(add, 1)
    try:
        with pytest.raises(RedisUnreachableError) as refused:
            client.submit(add, 1)
    finally:
        own_server.restart()
    assert not isinstance(refused.value, OutcomeUnknownError)
    assert isinstance(stale.value, RedisUnavailableError)
