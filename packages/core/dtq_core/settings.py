"""Every setting: its name, default, check and meaning, and where its value came from.

A value is taken from the arguments of a call or command, then the environment (``DTQ_…``), then
``dtq.toml``, then the default. No other module reads the environment, except the failpoints of
tests.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from reprlib import repr as shorten
from typing import Any

from dtq_core.errors import InputError, SettingsError
from dtq_core.limits import (
    MAX_CONCURRENCY,
    MAX_DURABILITY_TIMEOUT_S,
    MAX_DURATION_S,
    MAX_PARTITIONS,
    MAX_PAYLOAD_BYTES,
    MAX_PROCESSES,
    MAX_RESULT_BYTES,
    MIN_VISIBILITY_S,
    Durability,
    check_count,
    check_name,
)

Check = Callable[[str, Any], Any]


def _seconds(minimum: float, maximum: float = MAX_DURATION_S) -> Check:
    def check(name: str, value: Any) -> float:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise SettingsError(f"{name}={shorten(value)} is not a number of seconds") from None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SettingsError(f"{name}={shorten(value)} is not a number of seconds")
        if not minimum <= value <= maximum:
            raise SettingsError(
                f"{name}={shorten(value)} is out of range: use {minimum:g} to {maximum:g} seconds"
            )
        return float(value)

    return check


def _number(minimum: float, maximum: float) -> Check:
    def check(name: str, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise SettingsError(f"{name}={shorten(value)} is not a number") from None
        if not minimum <= number <= maximum:
            raise SettingsError(
                f"{name}={shorten(value)} is out of range: use {minimum:g} to {maximum:g}"
            )
        return number

    return check


def _whole(minimum: int, maximum: int) -> Check:
    def check(name: str, value: Any) -> int:
        if isinstance(value, str):
            try:
                value = int(value)
            except ValueError:
                raise SettingsError(f"{name}={shorten(value)} is not a whole number") from None
        return check_count(name, value, maximum, minimum)

    return check


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise SettingsError(f"{name}={shorten(value)} is not text")
    return value


def _name(name: str, value: Any) -> str:
    return check_name(name, value)


def _one_of(*choices: str) -> Check:
    def check(name: str, value: Any) -> str:
        if value not in choices:
            raise SettingsError(
                f"{name}={shorten(value)} does not exist: use {' or '.join(choices)}"
            )
        return str(value)

    return check


def _setting(default: Any, check: Check, meaning: str) -> Any:
    return field(default=default, metadata={"check": check, "meaning": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one process; durations are seconds."""

    redis_url: str | None = _setting(
        None, _text, "The server: redis://, rediss:// or unix://. Default: this project's own."
    )
    redis_server: str | None = _setting(
        None, _text, "The program that the embedded server runs. Default: the first one found."
    )
    prefix: str = _setting("dtq", _name, "What every key begins with.")
    partitions: int = _setting(
        1, _whole(1, MAX_PARTITIONS), "Complete sets of keys; fixed once a deployment exists."
    )
    visibility_timeout: float = _setting(
        30.0,
        _seconds(MIN_VISIBILITY_S),
        "How long a task may stay unrenewed before another worker takes it.",
    )
    concurrency: int = _setting(
        100, _whole(1, MAX_CONCURRENCY), "Tasks that one worker process runs at the same time."
    )
    processes: int = _setting(
        os.cpu_count() or 1, _whole(1, MAX_PROCESSES), "Worker processes of one supervisor."
    )
    max_tasks_per_process: int = _setting(
        0, _whole(0, 1_000_000_000), "Tasks after which a worker process is replaced; 0: never."
    )
    max_memory_mib: int = _setting(
        0, _whole(0, 1_048_576), "Peak memory after which it is replaced; 0: never."
    )
    band_order: str = _setting(
        "strict", _one_of("strict", "weighted"), "How a worker shares itself between bands."
    )
    shutdown_grace: float = _setting(
        25.0, _seconds(0), "How long a stopping worker waits for what it runs."
    )
    reaper_interval: float = _setting(
        5.0, _seconds(0.05), "How often a worker looks for tasks of lost workers."
    )
    scheduler_tick: float = _setting(
        0.5, _seconds(0.01, 60), "The longest pause between two looks at what is due."
    )
    leader_lease: float = _setting(
        5.0, _seconds(0.5), "How long a scheduler leads without renewing."
    )
    misfire_grace: float = _setting(
        60.0,
        _seconds(0),
        "How late a slot of a recurring task may be fired where missed ones are skipped.",
    )
    verify_interval: float = _setting(
        3600.0,
        _seconds(0),
        "How long the scheduler rests between two walks in search of lost tasks; 0: no walks.",
    )
    unknown_task_timeout: float = _setting(
        3600.0, _seconds(0), "How long a task whose name no worker knows is kept waiting for one."
    )
    unknown_task_delay: float = _setting(
        5.0, _seconds(0.05), "How long such a task rests before a worker looks at it again."
    )
    retention: float = _setting(
        86_400.0, _seconds(0), "How long the record of an ended task stays."
    )
    result_ttl: float = _setting(86_400.0, _seconds(0.001), "How long a result stays.")
    idempotency_ttl: float = _setting(
        86_400.0, _seconds(0.001), "How long an idempotency key stays taken after its task ended."
    )
    operation_ttl: float = _setting(
        604_800.0,
        _seconds(0.001),
        "How long a handler's guarded operation is remembered, from its begin and from its end.",
    )
    max_payload_bytes: int = _setting(
        MAX_PAYLOAD_BYTES, _whole(1, 512 * MAX_PAYLOAD_BYTES), "The largest payload, encoded."
    )
    max_result_bytes: int = _setting(
        MAX_RESULT_BYTES, _whole(1, 512 * MAX_RESULT_BYTES), "The largest result, encoded."
    )
    events_maxlen: int = _setting(
        10_000, _whole(1, 100_000_000), "About how many lifecycle events are kept."
    )
    audit_maxlen: int = _setting(
        0,
        _whole(0, 1_000_000_000),
        "About how many entries of the audit log are kept; 0: all of them.",
    )
    connect_timeout: float = _setting(
        5.0, _seconds(0.01), "How long one connection attempt or command may take."
    )
    retry_timeout: float = _setting(
        10.0, _seconds(0), "How long a client sends a call again while the server is away."
    )
    durability: str = _setting(
        Durability.MEMORY.value,
        _one_of(*Durability),
        "How far a submission must have got when it is accepted: memory, replica or disk.",
    )
    durability_timeout: float = _setting(
        5.0,
        _seconds(0.001, MAX_DURABILITY_TIMEOUT_S),
        "How long a replica or the disk may take to confirm one.",
    )
    api_host: str = _setting("127.0.0.1", _text, "The address that the HTTP API listens on.")
    api_port: int = _setting(8720, _whole(0, 65_535), "Its port; 0: any free one.")
    api_rate: float = _setting(
        0.0, _number(0, 1_000_000), "Requests a second that one API key may make; 0: any number."
    )
    api_max_requests: int = _setting(
        1_000, _whole(1, 1_000_000), "Requests that one API process works on at the same time."
    )
    api_read_timeout: float = _setting(
        10.0, _seconds(0.05), "How long a request may take to come, its head and its body each."
    )
    api_max_batch_bytes: int = _setting(
        32 * MAX_PAYLOAD_BYTES, _whole(1, 512 * MAX_PAYLOAD_BYTES), "The largest batch of tasks."
    )
    log_format: str = _setting(
        "auto",
        _one_of("auto", "pretty", "json"),
        "Log lines: `pretty` or `json`; `auto` is `pretty` on a terminal.",
    )
    log_level: str = _setting(
        "info", _one_of("debug", "info", "warning", "error"), "The least important line shown."
    )

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None:
                checked = item.metadata["check"](_variable(item.name), value)
                object.__setattr__(self, item.name, checked)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as resolved: what ``dtq settings`` shows."""

    name: str
    value: Any
    source: str
    meaning: str


def project_folder(start: Path | None = None) -> Path:
    """Return the folder of the project: the nearest with a ``dtq.toml`` or ``.dtq``, else here.

    Above the starting folder only those of this user and of root count: in ``/tmp``, say, anyone
    may leave a ``dtq.toml``, and it may name the program that is run.

    Args:
        start: where to look first, the current folder unless given.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        marks = _marks(folder)
        if marks and (folder == here or all(map(_is_ours, marks))):
            return folder
    return here


def _marks(folder: Path) -> list[Path]:
    """What makes a folder a project; nothing if it cannot be entered."""
    found = [folder / "dtq.toml"] if os.path.isfile(folder / "dtq.toml") else []
    return [*found, folder / ".dtq"] if os.path.isdir(folder / ".dtq") else found


def _is_ours(path: Path) -> bool:
    return path.stat().st_uid in (0, os.getuid())


def load(
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Return the settings of this process.

    Args:
        overrides: values given by the caller; None means not given.
        environ: the environment, ``os.environ`` unless given.
        folder: the project folder, found from the current one unless given.

    Raises:
        SettingsError: for an unknown name or a value out of bounds, naming its source.
    """
    return resolve(overrides, environ, folder)[0]


def resolve(
    overrides: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> tuple[Settings, list[Setting]]:
    """Return the settings, and each one with its source. Arguments and errors as :func:`load`."""
    file = (folder or project_folder()) / "dtq.toml"
    layers = {
        "argument": {k: v for k, v in (overrides or {}).items() if v is not None},
        "environment": _from_environ(os.environ if environ is None else environ),
        "dtq.toml": _from_file(file),
    }
    known = {item.name: item.metadata["check"] for item in fields(Settings)}
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for source, layer in layers.items():
        for name, value in layer.items():
            if name not in known:
                raise SettingsError(f"there is no setting {name!r} (from: {source})")
            if name not in values:
                spelled = f"{file}: {name}" if source == "dtq.toml" else _variable(name)
                values[name], sources[name] = _checked(known[name], spelled, value), source
    settings = Settings(**values)
    return settings, [
        Setting(
            item.name,
            getattr(settings, item.name),
            sources.get(item.name, "default"),
            item.metadata["meaning"],
        )
        for item in fields(Settings)
    ]


def _variable(name: str) -> str:
    return f"DTQ_{name.upper()}"


def _checked(check: Check, spelled: str, value: Any) -> Any:
    try:
        return check(spelled, value)
    except InputError as error:
        raise SettingsError(str(error)) from None


def _from_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings in the environment; other ``DTQ_`` variables are none of ours to refuse."""
    names = {_variable(item.name): item.name for item in fields(Settings)}
    return {names[key]: value for key, value in environ.items() if key in names and value}


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from None
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number of too many digits
        raise SettingsError(f"{path} is not valid TOML: {error}") from None
