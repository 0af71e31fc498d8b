"""The two tiers of tests: what `make test` runs, and what `make test-all` runs besides.

A test of the second tier has the mark `slow` with its reason. The others should need less than a second of
CPU time each. What needs more is said at the end of a run, unless it stands in `LONG`.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Generator, Iterable
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

# Seconds of CPU time for a test of the first tier, with its fixtures and the processes that it waits for.
LIMIT = 1.0

# The tests of the first tier that may need more, and why each is worth it. No more than a dozen.
LONG = {
    "test_a_change_by_hand_fails_the_check_with_a_diff_and_the_command": "runs the generator twice",
    "test_a_content_without_its_method_is_reported_wherever_the_recording_was_suspended": "at each packet",
    "test_a_patch_over_ours_is_called_until_it_is_undone_and_nothing_of_ours_stays": "in every order",
    "test_a_tolerant_decoder_takes_any_table_and_gives_back_its_octets": "draws 150 tables",
    "test_an_interrupt_at_any_step_leaves_a_decoder_that_can_be_reset": "interrupts at each step",
    "test_both_builds_show_the_same": "draws values of every form",
    "test_calls_of_bare_instances_do_not_end_the_process": "calls everything",
    "test_everything_does_happen": "counts what all captures of the folder have",
    "test_messages_come_back_as_they_were": "generates a package",
    "test_stock_and_tolerant_do_alike_what_stock_does_at_all": "compares all given octets, whole and cut",
    "test_the_blocks_of_a_page_run": "starts the servers and the pytest of a page",
    "test_the_broker_answers_as_rabbitmq_has": "compares all stored answers",
}

# Marks of tests that `make test` leaves out.
LEFT_OUT = ("slow", "spark", "broker", "fetches", "releases", "interop")

# The dialects of the first tier: the one that is used, and the one that differs most from it.
DIALECTS = ("rabbitmq-0-9-1", "amqp-0-9")

# When `make` began, in seconds since 1970: what it installed and compiled is a part of the set-up.
BEGAN = "AMQPCODEC_TESTS_BEGAN"


def check_reasons(items: Iterable[pytest.Item]) -> None:
    """Refuse a mark `slow` without its reason."""
    for item in items:
        for mark in item.iter_markers("slow"):
            if len(mark.args) != 1 or not mark.args[0]:
                raise pytest.UsageError(f"{item.nodeid}: the mark `slow` has one argument, its reason")


def of_dialects(cases: Iterable[Any]) -> list[Any]:
    """Return parameters, which are names of dialects or begin with one; those of most are slow."""
    slow = pytest.mark.slow("of a further dialect")
    every = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=() if case[0] in DIALECTS else slow) for case in every]


def few(cases: Iterable[Any], first: int, reason: str) -> list[Any]:
    """Return parameters, of which all after the first so many are slow for a reason."""
    every = [case if isinstance(case, tuple) else (case,) for case in cases]
    slow = pytest.mark.slow(reason)
    return [pytest.param(*case, marks=slow if at >= first else ()) for at, case in enumerate(every)]


def cpu() -> float:
    """Return the CPU time of this process and of those that it has waited for, in seconds."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


class Clock:
    """Counts the CPU time of each test, in whichever process it runs, and says at the end what took long."""

    def __init__(self) -> None:
        self.began = float(os.environ.get(BEGAN) or time.time())
        self.first = 0.0  # when the first test began
        self.last = cpu()
        self.used = Counter[str]()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """In a process of xdist, report a test that passes once: five messages need a millisecond."""
        self.last = cpu()
        if not hasattr(item.config, "workerinput"):
            return None
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        sent = [report for report in reports if report.when == "call" or not report.passed]
        sent[0].cpu = sum(report.cpu for report in reports)
        for report in sent:
            item.ihook.pytest_runtest_logreport(report=report)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write into a report what its part of the test needed: reports come from the processes of xdist."""
        report = yield
        now = cpu()
        report.cpu, self.last = now - self.last, now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.first = self.first or report.start
        if not any(mark in report.keywords for mark in LEFT_OUT):
            self.used[report.nodeid] += getattr(report, "cpu", 0.0)  # a process that died has none

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.first:
            return
        for line in over_the_limit(self.used):
            terminalreporter.write_line(line)
        terminalreporter.write_line(
            f"set-up {self.first - self.began:.0f} s, tests {time.time() - self.first:.0f} s;"
            f" {sum(self.used.values()):.0f} s of CPU time in tests of the first tier"
        )


def over_the_limit(used: dict[str, float]) -> list[str]:
    """Return a line for each test that needed more than `LIMIT` and is not in `LONG`."""
    return [
        f"LONG {node}: {seconds:.1f} s of CPU time; make it quicker, or mark it as slow (tests/README.md)"
        for node, seconds in sorted(used.items(), key=lambda entry: -entry[1])
        if seconds > LIMIT and node.partition("[")[0].rpartition("::")[2] not in LONG
    ]
