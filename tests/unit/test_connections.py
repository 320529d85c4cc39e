"""From a URL to a connection, and from an error of redis-py to one of ours."""

from __future__ import annotations

import inspect

import pytest
from redis import exceptions as rx
from redis.connection import DefaultParser

from dtq_core.connections import redact, resolve_url, translate
from dtq_core.errors import (
    CorruptDataError,
    RedisBusyError,
    RedisDeniedError,
    RedisError,
    RedisFullError,
    RedisUnavailableError,
    SettingsError,
)
from dtq_core.settings import Settings

MAPPED = {
    "ConnectionError": RedisUnavailableError,
    "TimeoutError": RedisUnavailableError,
    "BusyLoadingError": RedisBusyError,
    "ReadOnlyError": RedisBusyError,
    "MaxConnectionsError": RedisUnavailableError,
    "AuthenticationError": RedisDeniedError,
    "AuthorizationError": RedisDeniedError,
    "NoPermissionError": RedisDeniedError,
    "ExternalAuthProviderError": RedisUnavailableError,
    "OutOfMemoryError": RedisFullError,
    "MasterDownError": RedisBusyError,
    "ClusterDownError": RedisBusyError,
    "TryAgainError": RedisBusyError,
}
"""Errors of redis-py that mean something of their own to us."""

PLAIN = {
    "RedisError",
    "ResponseError",
    "InvalidResponse",
    "DataError",
    "PubSubError",
    "ExecAbortError",
    "ModuleError",
    "NoSuchFieldsetError",
    "AuthenticationWrongNumberOfArgsError",
}
"""Errors that mean no more than that the server or the call is wrong."""

NEVER_MET = {
    "NoScriptError": "answered by sending the script, in the link itself",
    "WatchError": "no transactions",
    "LockError": "no locks of redis-py",
    "LockNotOwnedError": "no locks of redis-py",
    "ChildDeadlockedError": "no redis-py error at all, and no fork inside a command",
    "IncorrectPolicyType": "no such policies",
    "ClusterCrossSlotError": "no cluster yet",
    "ClusterError": "no cluster yet",
    "AskError": "no cluster yet",
    "MovedError": "no cluster yet",
    "SlotNotCoveredError": "no cluster yet",
    "RedisClusterException": "no cluster yet",
    "CrossSlotTransactionError": "no cluster yet",
    "InvalidPipelineStack": "no cluster yet",
}


def test_every_error_of_redis_py_was_thought_of() -> None:
    theirs = {
        name
        for name, value in vars(rx).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert theirs == set(MAPPED) | PLAIN | set(NEVER_MET)


@pytest.mark.parametrize("name", MAPPED)
def test_an_error_becomes_ours(name: str) -> None:
    assert type(translate(getattr(rx, name)("text"), "there")) is MAPPED[name]


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_an_error_without_a_meaning_of_its_own_is_a_redis_error(name: str) -> None:
    assert type(translate(getattr(rx, name)("text"), "there")) is RedisError


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'.", RedisFullError),
        (
            "ERR Error running script (call to f_1): @user_script:9: -OOM command not allowed",
            RedisFullError,
        ),
        ("OOM command not allowed when used memory > 'maxmemory'. script: 1", RedisFullError),
        ("READONLY You can't write against a read only replica. script: 1", RedisBusyError),
        ("BUSY Redis is busy running a script.", RedisBusyError),
        ("LOADING Redis is loading the dataset in memory", RedisBusyError),
        ("MISCONF Redis is configured to save RDB snapshots", RedisBusyError),
        ("MASTERDOWN Link with MASTER is down", RedisBusyError),
        ("CLUSTERDOWN The cluster is down", RedisBusyError),
        ("TRYAGAIN Multiple keys request during rehashing of slot", RedisBusyError),
        ("ERR max number of clients reached", RedisUnavailableError),
        ("UNKILLABLE The script has already written", RedisBusyError),
        ("NOREPLICAS Not enough good replicas to write.", RedisBusyError),
        ("UNBLOCKED force unblock from blocking operation", RedisBusyError),
        ("NOAUTH Authentication required.", RedisDeniedError),
        ("WRONGPASS invalid username-password pair", RedisDeniedError),
        ("NOPERM User dtq has no permissions to run the 'evalsha' command", RedisDeniedError),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", CorruptDataError),
        ("user_script:14: CORRUPT dtq:events is a list, not a stream script: 1", CorruptDataError),
        ("ERR unknown command 'EVALSHA'", RedisError),
        ("BUSYGROUP Consumer Group name already exists", RedisError),
        ("MOVED 3999 127.0.0.1:6381", RedisError),
    ],
)
def test_what_a_server_says_decides(text: str, ours: type[RedisError]) -> None:
    error = translate(DefaultParser.parse_error(text), "there")
    assert type(error) is ours
    assert "there" in str(error)


def test_an_error_of_the_system_means_unavailable_and_one_line() -> None:
    error = translate(ConnectionRefusedError(111, "refused\nby peer"), "there")
    assert type(error) is RedisUnavailableError
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:secret@host:1/2", "redis://host:1/2"),
        ("rediss://:secret@host", "rediss://host"),
        ("unix://:secret@/run/redis.sock?db=1", "unix:///run/redis.sock"),
        ("redis://user:se:cr/et@secret@host:1", "redis://host:1"),
        ("user:secret@host", "host"),
        ("redis://host:6379", "redis://host:6379"),
    ],
)
def test_no_secret_is_shown(url: str, shown: str) -> None:
    assert redact(url) == shown
    assert "secret" not in redact(url)


@pytest.mark.parametrize("url", ["redis+sentinel://h", "rediss+cluster://h"])
def test_a_form_that_is_not_built_yet_says_so(url: str) -> None:
    with pytest.raises(SettingsError, match="not supported yet"):
        resolve_url(Settings(redis_url=url))


@pytest.mark.parametrize("url", ["http://host", "host:6379", "redis", "amqp://user:secret@h"])
def test_what_is_no_redis_url_is_refused_with_the_forms_there_are(url: str) -> None:
    with pytest.raises(SettingsError, match="redis://host:6379") as caught:
        resolve_url(Settings(redis_url=url))
    assert "secret" not in str(caught.value)


def test_without_a_url_and_a_server_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.chdir(str(tmp_path))
    with pytest.raises(RedisUnavailableError, match=r"set DTQ_REDIS_URL .* dtq dev"):
        resolve_url(Settings())
