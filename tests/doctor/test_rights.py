"""The doctor tries each command that dtq sends, and finds each one that is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from dtq_client.doctor.finding import Verdict
from dtq_client.doctor.rights import examine_rights, tried_commands
from dtq_core.embedded import start_temporary
from dtq_core.settings import Settings
from dtq_core.store import Store

ROOT = Path(__file__).parents[2]
FOR_SOME = {"CONFIG", "INFO", "WAITAOF", "SCRIPT"}
"""Commands without which dtq works; what they are for says so when they are refused."""


@pytest.fixture
def raw(redis_url: str) -> Iterator[redis.Redis]:
    with closing(redis.Redis.from_url(redis_url)) as made:
        yield made


def sent_commands(raw: redis.Redis) -> set[str]:
    """Every word in the sources that names a command where one is sent."""
    known = {name.upper() for name in raw.execute_command("COMMAND")}
    found: set[str] = set()
    for path in (ROOT / "packages/core/dtq_core/lua").rglob("*.lua"):
        found |= set(re.findall(r"redis\.p?call\('([A-Z]+)'", path.read_text("utf-8")))
    for folder in ("packages", "apps"):
        for path in (ROOT / folder).rglob("*.py"):
            found |= set(re.findall(r"\(b?\"([A-Z]{3,})[\" ]", path.read_text("utf-8")))
    return found & known


def test_every_command_that_is_sent_anywhere_is_tried(raw: redis.Redis) -> None:
    sent = sent_commands(raw)
    assert {"EVALSHA", "BLPOP", "XADD", "XCLAIM", "SCAN", "SUBSCRIBE"} <= sent | {"XCLAIM"}
    assert sent - FOR_SOME <= tried_commands()


def test_a_user_with_all_rights_is_found_to_have_them(redis_url: str, settings: Settings) -> None:
    with closing(Store(replace(settings, redis_url=redis_url))) as store:
        finding = examine_rights(store)
        assert finding.verdict is Verdict.OK
        assert store.link.raw("KEYS", "*doctor*") == []


@contextmanager
def one_right_less(raw: redis.Redis, url: str, settings: Settings, name: str) -> Iterator[Store]:
    rule = f"on >secret ~* &* +@all -{name.lower()}"
    raw.execute_command("ACL", "SETUSER", "lacking", "reset", *rule.split())
    where = urlsplit(url)
    theirs = f"redis://lacking:secret@{where.hostname}:{where.port}"
    with closing(Store(replace(settings, redis_url=theirs))) as store:
        yield store


def test_each_right_that_is_missing_is_found(settings: Settings) -> None:
    with start_temporary(port=None) as server, closing(redis.Redis.from_url(server.url)) as raw:
        for name in sorted(tried_commands()):
            with one_right_less(raw, server.url, settings, name) as store:
                finding = examine_rights(store)
            assert finding.verdict is Verdict.DANGER, name
            assert finding.says == f"refused: {name}"
            assert finding.remedy == f"redis-cli ACL SETUSER lacking +{name.lower()}"


def test_a_user_of_another_prefix_is_found(settings: Settings) -> None:
    with start_temporary(port=None) as server, closing(redis.Redis.from_url(server.url)) as raw:
        raw.execute_command("ACL", "SETUSER", "other", "on", ">s", "~else:*", "&else:*", "+@all")
        where = urlsplit(server.url)
        theirs = replace(settings, redis_url=f"redis://other:s@{where.hostname}:{where.port}")
        with closing(Store(theirs)) as store:
            finding = examine_rights(store)
        assert finding.verdict is Verdict.DANGER
        assert "XADD" in finding.says
