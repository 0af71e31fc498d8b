"""The libraries under test, each behind the same small interface, so that a work item is written once."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from peers.interface import MissingError, Peer

# What each column of the results is called, and how to get at it; the order of the columns.
FACTORIES: dict[str, tuple[str, str]] = {
    "amqpcodec": ("peers.ours", "compiled"),
    "amqpcodec pure": ("peers.ours", "pure"),
    "py-amqp": ("peers.pyamqp", "pure"),
    "py-amqp Cython": ("peers.pyamqp", "cython"),
    "pika": ("peers.pika", "peer"),
    "pamqp": ("peers.pamqp", "peer"),
}
OURS = ("amqpcodec", "amqpcodec pure")


def _find() -> tuple[dict[str, Peer], dict[str, str]]:
    """The libraries that are here, by name, and for those that are not, the reason."""
    found: dict[str, Peer] = {}
    missing: dict[str, str] = {}
    for name, (module, factory) in FACTORIES.items():
        try:
            make: Callable[[], Peer] = getattr(import_module(module), factory)
            found[name] = make()
        except (ImportError, MissingError) as error:
            missing[name] = str(error)
    return found, missing


def __getattr__(name: str) -> Any:
    """FOUND and MISSING, when they are first asked for: counting instructions needs none of the others."""
    if name not in ("FOUND", "MISSING"):
        raise AttributeError(name)
    found, missing = _find()
    globals().update(FOUND=found, MISSING=missing)
    return globals()[name]
