"""pytest-benchmark's set-up: the libraries, the check before each timing, the stored figures."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import peers
import pytest
from peers import FOUND, MISSING
from peers.interface import NotOfferedError, Peer

STATISTICS = ("min",)  # what is stored

Timed = Callable[..., None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--item` for less."""
    parser.addoption("--item", action="append", help="only this work item, as the tables call it")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `peer` runs once for each library, one that takes `ours` once for each build."""
    for fixture, names in (("peer", tuple(peers.FACTORIES)), ("ours", peers.OURS)):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, names, indirect=True)


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> Peer:
    """One of the libraries; skips where it is missing."""
    name: str = request.param
    if name in MISSING:
        pytest.skip(f"{name}: {MISSING[name]}")
    return FOUND[name]


@pytest.fixture
def ours(request: pytest.FixtureRequest) -> Any:
    """One of the builds of amqpcodec; skips where it is missing."""
    name: str = request.param
    if name in MISSING:
        pytest.skip(f"{name}: {MISSING[name]}")
    return FOUND[name]


@pytest.fixture
def timed(benchmark: Any, request: pytest.FixtureRequest) -> Timed:
    """Time a call and store whose it was, what it worked on, and how many operations one call is."""
    chosen = request.config.getoption("--item")

    def time(name: str, item: str, operations: int, call: Callable[[], Any], rounds: int = 0) -> None:
        if chosen and item not in chosen:
            pytest.skip("not chosen")
        benchmark.group = item
        benchmark.extra_info.update(peer=name, item=item, operations=operations)
        if rounds:
            benchmark.pedantic(call, rounds=rounds, warmup_rounds=1)
        else:
            benchmark(call)

    return time


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Any:
    """What a library has nothing for is skipped, not failed."""
    try:
        return (yield)
    except NotOfferedError as reason:
        pytest.skip(str(reason))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name the libraries that were missing."""
    for name, reason in MISSING.items():
        terminalreporter.write_line(f"MISSING {name}: {reason}")


def pytest_benchmark_update_json(config: pytest.Config, benchmarks: Any, output_json: dict[str, Any]) -> None:
    """Keep the statistics, not every single timing, and nothing that names the machine's owner."""
    output_json["versions"] = {name: library.version for name, library in FOUND.items()}
    output_json["missing"] = MISSING
    machine = output_json["machine_info"]
    machine["cores"] = os.cpu_count()
    machine["cpu"] = {"brand_raw": (machine.get("cpu") or {}).get("brand_raw")}
    machine.pop("node", None)
    commit = output_json["commit_info"]
    output_json["commit_info"] = {"id": commit.get("id"), "dirty": commit.get("dirty")}
    output_json["benchmarks"] = [
        {
            "extra_info": entry["extra_info"],
            "stats": {name: entry["stats"][name] for name in STATISTICS},
        }
        for entry in output_json["benchmarks"]
    ]
