"""The comparison of stock and accelerated peers sees what differs: tests of the tests' own machinery."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from support.compat import engine
from support.compat.compare import PEERS, given_mismatches, random_mismatches
from support.compat.engine import Copy, Outcome, Pair, brief, describe, in_use, pair, play
from support.compat.inputs import Mode
from support.encoder_values import IntChild, StrChild


@pytest.fixture(scope="module", params=PEERS)
def peers(request: pytest.FixtureRequest) -> Pair:
    pytest.importorskip(request.param)
    return pair(request.param)


@pytest.fixture(scope="module")
def pamqp() -> Copy:
    pytest.importorskip("pamqp")
    return in_use("pamqp")


def test_the_stock_copy_shares_nothing_with_the_one_that_programs_import(peers: Pair) -> None:
    assert peers.accelerated.root is sys.modules[peers.stock.package]
    assert peers.stock.root is not peers.accelerated.root
    name = "spec" if peers.stock.package != "pamqp" else "commands"
    assert getattr(peers.stock, name).Basic is not getattr(peers.accelerated, name).Basic


@pytest.mark.slow("plays all programs twice")
def test_two_copies_without_acceleration_do_the_same(peers: Pair) -> None:
    assert not any(random_mismatches(peers, "engine", 1500))
    assert not any(given_mismatches(peers))


TELLING_APART: list[tuple[Any, Any]] = [
    (1, True), (1, 1.0), (1, Mode.TRANSIENT), (5, IntChild(5)), ("x", StrChild("x")), (b"x", bytearray(b"x")),
    (b"x", memoryview(b"x")), (0.0, -0.0), (Decimal("1.0"), Decimal("1.00")), (Decimal("0"), Decimal("-0")),
    (datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=UTC)), ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ([1], (1,)), ([1, [2]], [1, [True]]), (None, False), (ValueError("a"), ValueError("b")),
    (ValueError("a"), TypeError("a")),
    (ValueError(1), ValueError("1")), ("\ud800", "\udc80"), (float("nan"), -float("nan")),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), TELLING_APART, ids=lambda value: type(value).__name__)
def test_values_are_distinguished(pamqp: Copy, one: Any, other: Any) -> None:
    assert describe(one, pamqp) != describe(other, pamqp)
    assert describe(one, pamqp) == describe(one, pamqp)


def test_a_cause_of_an_exception_is_distinguished(pamqp: Copy) -> None:
    one, other = ValueError("a"), ValueError("a")
    one.__cause__ = KeyError("b")
    assert describe(one, pamqp) != describe(other, pamqp)


def test_attributes_are_distinguished_by_value_order_and_presence(pamqp: Copy) -> None:
    def seen(change: Callable[[Any], None]) -> Any:
        header = pamqp.header.ContentHeader()
        change(header)
        return describe(header, pamqp)

    def reorder(header: Any) -> None:
        header.__dict__ = dict(reversed(vars(header).items()))

    changes: list[Callable[[Any], None]] = [
        lambda header: None,
        lambda header: setattr(header, "weight", False),
        lambda header: setattr(header.properties, "priority", 0),
        lambda header: delattr(header.properties, "priority"),
        lambda header: delattr(header, "weight"),
        reorder,
    ]
    assert len({repr(seen(change)) for change in changes}) == len(changes)


def test_a_class_of_the_other_copy_is_distinguished(pamqp: Copy) -> None:
    foreign = engine.stock("pamqp").heartbeat.Heartbeat()
    assert describe(foreign, pamqp) != describe(pamqp.heartbeat.Heartbeat(), pamqp)


def test_what_a_call_does_to_its_arguments_is_seen(pamqp: Copy) -> None:
    def scenario(peer: Copy, random: Random) -> tuple[Any, ...]:
        return list.clear, [random.random()]

    def other(peer: Copy, random: Random) -> tuple[Any, ...]:
        return (lambda items: None), [random.random()]

    assert play(pamqp, scenario, "1") == play(pamqp, scenario, "1") != play(pamqp, other, "1")


def test_a_call_that_does_not_end_is_stopped(pamqp: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    def scenario(peer: Copy, random: Random) -> tuple[Any, ...]:
        return (spin,)

    def spin() -> None:
        while True:
            pass

    monkeypatch.setattr(engine, "SECONDS", 0.05)
    outcome: Outcome = play(pamqp, scenario, "")
    assert brief(outcome) == "did not end"


def test_a_call_is_stopped_when_its_time_ends_in_a_callback(
    pamqp: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Referred:
        pass

    def scenario(peer: Copy, random: Random) -> tuple[Any, ...]:
        return (spin,)

    def spin() -> None:
        referred = Referred()
        reference = weakref.ref(referred, lambda reference: sum(range(5_000_000)))
        del referred  # the time is up in the callback
        while reference() is None:
            pass

    monkeypatch.setattr(engine, "SECONDS", 0.05)
    assert brief(play(pamqp, scenario, "")) == "did not end"
