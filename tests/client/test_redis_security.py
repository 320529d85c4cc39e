"""A Redis with TLS, passwords and users that may do no more than they need."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from cli.terminal import Terminal
from client.tasks import add
from dtq import Client, RedisError, RedisUnavailableError
from dtq_core.embedded import start_temporary
from dtq_core.errors import RedisDeniedError

TLS_SERVER = "/usr/bin/redis-server"
PAGE = Path(__file__).parents[2] / "docs/security.md"


def rule() -> list[str]:
    """The words of the rule on the page, without the password of the example."""
    (line,) = re.findall(r"^ACL SETUSER (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    return [word if not word.startswith(">") else ">secret" for word in line.split()]


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[str, redis.Redis]]:
    """A server with the user of the page; its URL, and an administrator's connection."""
    with start_temporary(tmp_path / "redis", port=None) as server:
        raw = redis.Redis.from_url(server.url)
        raw.execute_command("ACL", "SETUSER", *rule())
        where = urlsplit(server.url)
        yield f"redis://dtq:secret@{where.hostname}:{where.port}", raw
        raw.close()


def test_the_user_of_the_page_does_the_whole_work(
    guarded: tuple[str, redis.Redis], tmp_path: Path
) -> None:
    url, raw = guarded
    terminal = Terminal(tmp_path, url, prefix="dtq")
    terminal.prefix = "dtq"
    try:
        worker = terminal.start_worker()
        assert terminal.client.result(terminal.submit("add", 1, 2), 20) == 3
        terminal.client.cancel(terminal.submit("add", delay=60))
        terminal.ended(terminal.submit("fail", "x", max_attempts=1))
        for command in (
            *(["list"], ["queues"], ["workers"], ["stats"], ["events"], ["audit"], ["dlq", "list"]),
            *(["pause", "default"], ["resume", "default"], ["verify"], ["cron", "list"]),
            *(["dlq", "purge", "--all", "--yes"], ["purge", "--queue", "default", "--yes"]),
        ):
            done = terminal.run(*command)
            assert done.code == 0, (command, done)
        assert "NOPERM" not in "".join(map(str, raw.acl_log())), raw.acl_log()
        worker.terminate()
        assert worker.wait(20) == 0
    finally:
        terminal.close()


@pytest.mark.parametrize(
    "command",
    [
        ["SET", "other", 1],
        ["GET", "other"],
        ["PUBLISH", "other", 1],
        ["FLUSHALL"],
        ["CONFIG", "GET", "*"],
        ["KEYS", "*"],
        ["ACL", "LIST"],
        ["SHUTDOWN"],
        ["REPLICAOF", "NO", "ONE"],
        ["EVAL", "return redis.call('SET', 'other', 1)", 0],
    ],
    ids=lambda command: command[0],
)
def test_and_is_refused_the_rest(
    guarded: tuple[str, redis.Redis], command: list[str | int]
) -> None:
    user = redis.Redis.from_url(guarded[0])
    with pytest.raises(redis.ResponseError, match=r"NOPERM|permission|can't access"):
        user.execute_command(*command)
    user.close()


def test_a_wrong_password_is_one_line_without_it(
    guarded: tuple[str, redis.Redis], tmp_path: Path
) -> None:
    url = guarded[0].replace("secret", "hunter2")
    with Client(url) as client, pytest.raises(RedisDeniedError) as caught:
        client.submit(add, 1)
    assert "hunter2" not in str(caught.value)
    terminal = Terminal(tmp_path, None, redis_url=url, log_level="debug")
    for command in (["stats"], ["worker", "handlers"], ["scheduler"], ["api"]):
        done = terminal.run(*command)
        assert (done.code, done.out) == (1, "")
        assert "hunter2" not in done.err
        assert done.err.splitlines()[-1].startswith("dtq: ")


@contextmanager
def tls_server(folder: Path) -> Iterator[str]:
    """A server that speaks TLS alone, and asks for certificates; its URL without any."""
    if not os.access(TLS_SERVER, os.X_OK):
        pytest.skip("no Redis with TLS is installed")
    folder.mkdir()
    _openssl(folder, "req", "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
    for name in ("server", "client"):
        (folder / "ext").write_text("subjectAltName=DNS:localhost")
        _openssl(folder, "req", "-keyout", f"{name}.key", "-out", "csr", "-subj", "/CN=localhost")
        signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "ext"]
        command = ["openssl", "x509", "-req", "-in", "csr", "-out", f"{name}.pem", *signing]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    options = {
        "tls-port": "0",
        "tls-cert-file": folder / "server.pem",
        "tls-key-file": folder / "server.key",
        "tls-ca-cert-file": folder / "ca.pem",
    }
    config = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    with start_temporary(folder, redis_server=TLS_SERVER, port=None, config=config) as server:
        raw = redis.Redis.from_url(server.url)
        port = (urlsplit(server.url).port or 0) + 1
        raw.config_set("tls-port", port)
        raw.close()
        yield f"rediss://localhost:{port}"


def _openssl(folder: Path, *arguments: str) -> None:
    command = ["openssl", *arguments, "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def test_tls_with_certificates_of_both_sides(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    with tls_server(folder) as url:
        trust = f"?ssl_ca_certs={folder}/ca.pem"
        own = f"&ssl_certfile={folder}/client.pem&ssl_keyfile={folder}/client.key"
        with Client(url + trust + own, retry_timeout=0) as client:
            handle = client.submit(add, 1)
            assert handle.status() == "QUEUED"
        for wrong in (
            url + "?" + own[1:],
            url + trust,
            (url + trust + own).replace("localhost", "127.0.0.1"),
        ):
            with Client(wrong, retry_timeout=0, connect_timeout=2) as client:
                with pytest.raises(RedisError) as caught:
                    client.submit(add, 1)
                assert isinstance(caught.value, RedisUnavailableError | RedisDeniedError)
