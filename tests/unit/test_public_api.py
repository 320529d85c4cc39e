"""The public face: each name once, sorted, and the very object of the package it comes from."""

from __future__ import annotations

import importlib
import inspect

import pytest

import dtq
import dtq_client
import dtq_core.errors
import dtq_tasks


@pytest.mark.parametrize("module", [dtq, dtq_client, dtq_tasks])
def test_every_public_name_is_there_once_and_sorted(module: object) -> None:
    names = module.__all__  # type: ignore[attr-defined]
    assert list(names) == sorted(set(names))
    assert all(hasattr(module, name) for name in names)


def test_the_face_has_nothing_of_its_own() -> None:
    for name in dtq.__all__:
        value = getattr(dtq, name)
        home = inspect.getmodule(value) or importlib.import_module(type(value).__module__)
        assert home.__name__.split(".")[0] in {"dtq_core", "dtq_tasks", "dtq_client"}, name


def test_the_faces_of_the_packages_are_those_of_dtq() -> None:
    assert dtq.task is dtq_tasks.task
    assert dtq.exponential is dtq_tasks.exponential
    assert dtq.Client is dtq_client.Client
    assert dtq.AsyncClient is dtq_client.AsyncClient


def test_every_error_is_one_of_ours_and_is_named_in_the_tree() -> None:
    tree = inspect.getdoc(dtq_core.errors) or ""
    for name, value in vars(dtq_core.errors).items():
        if inspect.isclass(value):
            assert issubclass(value, dtq_core.errors.DtqError)
            assert name in tree, f"{name} is missing in the tree of the docstring"
