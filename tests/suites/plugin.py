"""A plugin of pytest: writes down how each test of a suite ended, and what was replaced meanwhile."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.clients.__main__ import status

VARIABLE = "AMQPCODEC_SUITE_RESULT"
_outcomes: dict[str, list[str]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the outcome of a test, and that of its set-up and tear-down where it is not the usual one."""
    if report.when == "call" or report.outcome != "passed":
        _outcomes.setdefault(report.nodeid, []).append(f"{report.when} {report.outcome}")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Keep files that cannot be collected."""
    if report.outcome != "passed":
        _outcomes.setdefault(report.nodeid, []).append(f"collection {report.outcome}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write it down."""
    found = {"outcomes": _outcomes, "status": status()}
    Path(os.environ[VARIABLE]).write_text(json.dumps(found), encoding="utf-8")
