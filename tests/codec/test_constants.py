"""Numbers that are written down twice, once for Python and once for C, are the same numbers."""

from __future__ import annotations

import re
from pathlib import Path

import amqpcodec
from amqpcodec import profiles
from amqpcodec._kernel import content_order, framing, wire
from amqpcodec.connection import constants

PACKAGE = Path(amqpcodec.__file__).parent


def constants_of(name: str) -> dict[str, int]:
    """The constants of a .pxd of the package: members of its enums, and the C expressions it declares."""
    text = (PACKAGE / name).read_text()
    members = re.findall(r"^ +([A-Z][A-Z0-9_]*) = (\w+)$", text, re.MULTILINE)
    declared = re.findall(r'^ +const [a-z ]+ ([A-Z][A-Z0-9_]*) "(\d+)L*"$', text, re.MULTILINE)
    return {name: int(value, 0) for name, value in members + declared}


def numbers_of(module: object) -> dict[str, int]:
    return {name: value for name, value in vars(module).items() if name.isupper() and type(value) is int}


def test_the_kinds_of_table_values() -> None:
    kinds = constants_of("_kernel/kinds.pxd")
    assert kinds == numbers_of(profiles)
    assert len(kinds) == 30
    assert sorted(kinds.values()) == list(range(1, 31))


def test_every_kind_has_a_name() -> None:
    assert set(profiles.KIND_NAMES) == set(numbers_of(profiles).values())


def test_the_numbers_of_the_frame_layer() -> None:
    assert constants_of("_kernel/wire.pxd") == numbers_of(wire)
    assert wire.FRAME_END == 0xCE


def test_what_a_frame_may_be_found_to_be() -> None:
    states = constants_of("_kernel/framing.pxd")
    assert {name: vars(framing)[name] for name in states} == states
    assert sorted(states.values()) == [0, 1, 2, 3, 4]


def test_the_stages_and_verdicts_of_contents() -> None:
    assert constants_of("_kernel/content_order.pxd") == {
        name: value for name, value in numbers_of(content_order).items() if value <= content_order.TOO_MANY
    }


def test_the_numbers_of_the_state_machine_of_connections() -> None:
    numbers = numbers_of(constants)
    assert constants_of("connection/constants.pxd") == numbers
    assert len(numbers) > 40
