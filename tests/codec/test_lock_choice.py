"""The pure build's lock is the cheap one only where the interpreter has a global lock."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from amqpcodec._kernel import lock_py


@pytest.mark.parametrize(
    ("name", "enabled", "global_lock"),
    [
        ("cpython", None, True),  # before 3.13
        ("cpython", True, True),
        ("cpython", False, False),
        ("pypy", None, False),
        ("pypy", True, False),
    ],
)
def test_a_global_lock_is_found(
    name: str, enabled: bool | None, global_lock: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = SimpleNamespace(implementation=SimpleNamespace(name=name))
    if enabled is not None:
        stand_in._is_gil_enabled = lambda: enabled
    monkeypatch.setattr(lock_py, "sys", stand_in)
    assert lock_py._has_global_lock() is global_lock


def test_the_lock_is_the_one_for_this_interpreter() -> None:
    global_lock = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()
    assert lock_py.Lock is (lock_py._GilLock if global_lock else lock_py._ThreadLock)
