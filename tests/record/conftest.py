"""Proxies before brokers, captures that are read back, and sessions of clients in their own way."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest
from support.builds import using
from support.coroutines import run
from support.implementation import Implementation


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutine functions."""
    return run(pyfuncitem, 60)


@pytest.fixture
def freed() -> Iterator[None]:
    """Free what loops that have ended leave of TLS connections, here and not in a later test.

    There its warning would be an error, and one inside of `ast.parse` breaks CPython 3.11.
    """
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(autouse=True)
def build(request: pytest.FixtureRequest, impl: Implementation) -> Iterator[None]:
    """Each build in turn, for what records and replays, and for the test itself."""
    with using(impl.name, request.module):
        yield
