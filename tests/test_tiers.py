"""The two tiers: which tests may need long, that a mark has its reason, and the words at the end of a run."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import tiers
from support.tiers import LIMIT, LONG, Clock, check_reasons, few, of_dialects, over_the_limit

ROOT = Path(__file__).resolve().parent.parent


def item(*arguments: Any) -> Any:
    """Return an item with a mark `slow`."""
    return SimpleNamespace(
        nodeid="t.py::test_a", iter_markers=lambda name: [pytest.mark.slow(*arguments).mark]
    )


def marks(parameters: list[Any]) -> list[tuple[Any, list[Any]]]:
    return [(each.values, [mark.args[0] for mark in each.marks]) for each in parameters]


def test_few_tests_of_the_first_tier_may_need_long_and_each_has_its_reason() -> None:
    assert len(LONG) <= 12
    assert all(LONG.values())
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    found = Counter(name for text in texts for name in re.findall(r"def (test_\w+)\(", text) if name in LONG)
    assert found == Counter(LONG.keys())


@pytest.mark.parametrize("arguments", [(), ("",), ("compiles", "installs")])
def test_a_mark_without_its_one_reason_is_refused(arguments: tuple[str, ...]) -> None:
    check_reasons([item("compiles")])
    with pytest.raises(pytest.UsageError, match=r"test_a: the mark `slow` has one argument"):
        check_reasons([item(*arguments)])


def test_all_but_the_first_parameters_are_slow() -> None:
    assert marks(few("abc", 2, "more of the same")) == [
        (("a",), []),
        (("b",), []),
        (("c",), ["more of the same"]),
    ]
    assert marks(few([(1, 2), (3, 4)], 1, "more")) == [((1, 2), []), ((3, 4), ["more"])]


def test_two_dialects_are_in_the_first_tier() -> None:
    assert marks(of_dialects([("amqp-0-8", "basic"), ("amqp-0-9", "tx"), ("rabbitmq-0-9-1", "tx")])) == [
        (("amqp-0-8", "basic"), ["of a further dialect"]),
        (("amqp-0-9", "tx"), []),
        (("rabbitmq-0-9-1", "tx"), []),
    ]


def test_the_end_of_a_run_names_what_needed_long_and_tells_set_up_from_tests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(tiers.BEGAN, "100.5")
    monkeypatch.setattr(tiers, "time", SimpleNamespace(time=lambda: 1000.0))
    monkeypatch.setattr(tiers, "LONG", {"test_known": "it is worth it"})
    clock, lines = Clock(), list[str]()
    for node, mark, seconds in (
        ("t.py::test_short", "", LIMIT),
        ("t.py::test_long[a]", "", LIMIT + 1),
        ("t.py::test_long[a]", "", 1.25),
        ("t.py::test_known[b]", "", 7.0),
        ("t.py::test_slow", "slow", 90.0),
    ):
        report = SimpleNamespace(nodeid=node, keywords={mark: 1}, cpu=seconds, start=140.0)
        clock.pytest_runtest_logreport(report)  # type: ignore[arg-type]
    clock.pytest_terminal_summary(SimpleNamespace(write_line=lines.append))  # type: ignore[arg-type]
    assert lines == [
        "LONG t.py::test_long[a]: 3.2 s of CPU time; make it quicker, or mark it as slow (tests/README.md)",
        "set-up 40 s, tests 860 s; 11 s of CPU time in tests of the first tier",
    ]
    assert over_the_limit({"t.py::test_short": LIMIT}) == []
