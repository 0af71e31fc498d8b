"""Another build in place of the one that modules took when they were imported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from amqpcodec import IMPL, _backend
from amqpcodec._protocol.index import DIALECTS


@contextmanager
def using(build: str, *tests: ModuleType) -> Iterator[None]:
    """Have all modules of the package use a build, and modules of tests as well.

    What they have got from the build in use is replaced, wherever a module keeps it under a name.
    """
    if build == IMPL:
        yield
        return
    others = _others(build)
    with pytest.MonkeyPatch.context() as patch:
        for module in DIALECTS.values():
            other = _backend.load(f"amqpcodec._generated.{module}", build)
            patch.setitem(sys.modules, f"amqpcodec.{module}", other)
        for module in [*tests, *_modules()]:
            for name, value in list(vars(module).items()):
                if id(value) in others:
                    patch.setattr(module, name, others[id(value)])
        _forget()
        yield
    _forget()


def _others(build: str) -> dict[int, Any]:
    """Return what another build has, by the identity of what the one in use has in its place."""
    found: dict[int, Any] = {
        id(import_module(f"amqpcodec.{module}")): _backend.load(f"amqpcodec._generated.{module}", build)
        for module in DIALECTS.values()
    }
    for name, module in list(sys.modules.items()):
        if name.startswith("amqpcodec.") and name.endswith(f"_{IMPL}"):
            try:
                other = _backend.load(name.removesuffix(f"_{IMPL}"), build)
            except ModuleNotFoundError:
                continue  # a part of one build alone
            for each, value in vars(module).items():
                if str(getattr(value, "__module__", "")).startswith("amqpcodec.") and hasattr(other, each):
                    found[id(value)] = getattr(other, each)
    return found


def _modules() -> list[ModuleType]:
    """Return the modules of the package that are not of the build in use."""
    return [
        module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "amqpcodec" and not name.endswith((f"_{IMPL}", "._backend"))
    ]


def _forget() -> None:
    """Have nothing that functions keep for the next call, such as modules of a build."""
    for module in _modules():
        for value in list(vars(module).values()):
            if hasattr(value, "cache_clear"):
                value.cache_clear()
