"""Fixtures for every test: the builds and the dialects."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings
from support.certificates import self_signed
from support.implementation import Implementation, left_out, wanted
from support.tiers import Clock, check_reasons, of_dialects

from amqpcodec import IMPL
from amqpcodec._protocol.index import DIALECTS

# A seed: files of tests are then run in an order of its own, to see whether one leans on another.
ORDER = "AMQPCODEC_TESTS_ORDER"

# Modules are compiled to bytecode once, whatever the shell says. Every worker would do it again, and every
# process that a test starts.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What tests start speaks UTF-8, whatever the system takes by default: they read its output so.
os.environ.setdefault("PYTHONUTF8", "1")

# The same examples each time, and none kept; `make fuzz` and `make fuzz-long` look for others.
settings.register_profile("default run", derandomize=True, database=None, deadline=None)
settings.load_profile("default run")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Clock())


def pytest_report_header() -> str:
    tested = ", ".join(wanted())
    note = f" ({left_out()})" if left_out() else ""
    return f"amqpcodec: builds tested: {tested}{note}; build in use: {IMPL}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, object, object]:
    """Mark what needs a RabbitMQ. In a process among several, let the tests that take long come first."""
    for item in items:
        if "rabbitmq" in getattr(item, "fixturenames", ()) and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.broker)
    check_reasons(items)
    outcome = yield
    if hasattr(config, "workerinput"):
        from support.distribution import rank, shuffled

        items[:] = shuffled(items, seed) if (seed := os.environ.get(ORDER)) else sorted(items, key=rank)
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search for no garbage: collecting makes a million objects, all of which stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def leave_out_of_searches() -> None:
    """Let searches for garbage pass over all that lives now: tests of memory and time ask for many."""
    if hasattr(gc, "freeze"):  # PyPy has none
        gc.collect()
        gc.freeze()


def pytest_collection_finish() -> None:
    leave_out_of_searches()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Before a new file, leave out what the files before it have imported and kept."""
    if nextitem is not None and nextitem.path != item.path:
        leave_out_of_searches()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that are divided by files are divided by our rule."""
    from support.distribution import ByFile

    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session", params=wanted())
def impl(request: pytest.FixtureRequest) -> Implementation:
    """Each build in turn."""
    return Implementation(request.param)


@pytest.fixture(scope="session")
def both() -> tuple[Implementation, Implementation]:
    """The compiled and the pure build, to be compared."""
    if reason := left_out():
        pytest.skip(reason)
    return Implementation("c"), Implementation("py")


@pytest.fixture(scope="session", params=of_dialects(DIALECTS))
def dialect(request: pytest.FixtureRequest) -> str:
    """The name of each dialect in turn; of most in the second tier."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def codec(impl: Implementation, dialect: str) -> ModuleType:
    """Each dialect's module in each build."""
    return impl.dialect(dialect)


@pytest.fixture(scope="session")
def amqp(impl: Implementation) -> ModuleType:
    """RabbitMQ's dialect in each build."""
    return impl.dialect("rabbitmq-0-9-1")


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[str]:
    """The URL of a RabbitMQ; skips where there is none."""
    from support.broker import NoBrokerError, broker

    try:
        with broker() as url:
            yield url
    except NoBrokerError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a key and a certificate of `localhost`."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = self_signed(folder)
    both = folder / "both"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    return both
