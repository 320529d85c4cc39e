"""Database servers of a test's own, on a socket in a folder; skipped where none is installed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from support.eventually import eventually

START_LIMIT_S = 60.0


@contextlib.contextmanager
def sqlite() -> Iterator[str]:
    """A file."""
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/shop.db"


@contextlib.contextmanager
def postgresql() -> Iterator[str]:
    """PostgreSQL, as the user of its package, since it refuses to run as root."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parts[-2]))
    if not found:
        pytest.skip("PostgreSQL is not installed")
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    with _folder_of("postgres") as folder:
        data = folder / "data"
        _run(*as_user, found[-1] / "initdb", "-D", data, "-A", "trust", "-U", "test", "-N")
        command = [*as_user, found[-1] / "postgres", "-D", data, "-k", folder, "-h", ""]
        with _running(command, signal.SIGINT):
            url = f"postgresql+psycopg://test@/postgres?host={folder}"
            eventually("PostgreSQL", lambda: _answers(url), START_LIMIT_S)
            yield url


@contextlib.contextmanager
def mariadb() -> Iterator[str]:
    """MariaDB, as the user of its package."""
    server, install = map(shutil.which, ("mariadbd", "mariadb-install-db"))
    if not server or not install:
        pytest.skip("MariaDB is not installed")
    with _folder_of("mysql") as folder:
        options = [f"--datadir={folder}/data", "--user=mysql"]
        _run(install, "--no-defaults", *options, "--auth-root-authentication-method=normal")
        socket = f"{folder}/socket"
        command = [server, "--no-defaults", *options, f"--socket={socket}", "--skip-networking"]
        with _running(command, signal.SIGTERM):
            url = f"mysql+pymysql://root@localhost/test?unix_socket={socket}"
            base = url.replace("/test?", "/mysql?")
            eventually("MariaDB", Path(socket).exists, START_LIMIT_S)
            eventually("MariaDB", lambda: _answers(base), START_LIMIT_S)
            engine = create_engine(base)
            with engine.begin() as connection:
                connection.execute(text("CREATE DATABASE IF NOT EXISTS test"))
            engine.dispose()
            yield url


DATABASES = {"SQLite": sqlite, "PostgreSQL": postgresql, "MariaDB": mariadb}


@contextlib.contextmanager
def _folder_of(user: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if os.geteuid() == 0:
            shutil.chown(folder, user, user)
        yield Path(folder)


def _run(*command: object) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def _running(command: list[object], stop: signal.Signals) -> Iterator[None]:
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.send_signal(stop)
        process.wait(START_LIMIT_S)


def _answers(url: str) -> bool:
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return connection.execute(text("SELECT 1")).scalar() == 1
    except OperationalError:
        return False
    finally:
        engine.dispose()
