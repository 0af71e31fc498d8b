"""The compiled build without what overwrites slots of types: docs/slots.md."""

from __future__ import annotations

import sys

import pytest
from support.implementation import Implementation, wanted
from support.slot_outcomes import outcomes
from support.subprocesses import output, python

VARIABLE = "AMQPCODEC_SLOTS"
COMPILED = pytest.mark.skipif("c" not in wanted(), reason="only the pure build is tested")
KINDS = "from amqpcodec.rabbitmq import Basic; print(type(vars(Basic.Publish)['exchange']).__name__)"


@COMPILED
def test_no_outcome_differs_where_slots_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    there = output("-m", "support.slot_outcomes", impl="c").decode().strip()
    assert there == f"False {outcomes(Implementation('c'))}"


@COMPILED
@pytest.mark.parametrize(("value", "kind"), [("0", "getset"), ("1", "member"), ("", "member")])
def test_the_variable_decides_about_slots(value: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert output("-c", KINDS, impl="c").decode().strip() == f"{kind}_descriptor"


@pytest.mark.parametrize("impl", wanted())
def test_other_values_of_the_variable_are_an_error(impl: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    finished = python("-c", "import amqpcodec", impl=impl)
    assert finished.returncode != 0
    assert f"{VARIABLE} must be 0 or 1, not 'off'" in finished.stderr.decode()


@COMPILED
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="references to None are not counted")
@pytest.mark.parametrize("value", ["0", "1"])
def test_no_reference_to_none_is_lost(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, value)
    program = (
        "import sys; from support.slot_outcomes import *; impl = Implementation('c'); outcomes(impl)\n"
        "before = sys.getrefcount(None)\n"
        "for _ in range(5): outcomes(impl)\n"
        "print(abs(sys.getrefcount(None) - before) < 50)"
    )
    assert output("-c", program, impl="c").decode().strip() == "True"
