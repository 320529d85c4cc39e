"""Handlers that tests submit; nobody runs them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from dtq import Registry
from dtq_tasks import TaskDecorator

task = TaskDecorator(Registry())


@dataclass
class Invoice:
    number: int
    due: date


@task
def add(left: int, right: int = 0) -> int:
    return left + right


@task
def invoice(number: int) -> Invoice:
    return Invoice(number, date(2030, 1, 1))


@task
def anything(value: Any) -> Any:
    return value


def plain(value: int) -> int:
    return value
