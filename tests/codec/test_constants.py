"""Numbers that are written down twice, once for Python and once for C, are the same numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import amqpcodec
from amqpcodec import profiles
from amqpcodec._kernel import content_order, fields, foreign, framing, read_values, wire
from amqpcodec._protocol import codes

PACKAGE = Path(amqpcodec.__file__).parent


def constants_of(name: str) -> dict[str, int]:
    """The constants of a .pxd of the package: members of its enums, and the C expressions it declares."""
    text = (PACKAGE / name).read_text(encoding="utf-8")
    members = re.findall(r"^ +([A-Z][A-Z0-9_]*) = (\w+)(?:  #.*)?$", text, re.MULTILINE)
    declared = re.findall(r'^ +const [a-z ]+ ([A-Z][A-Z0-9_]*) "(\d+)U?L*"', text, re.MULTILINE)
    return {name: int(value, 0) for name, value in members + declared}


def numbers_of(module: object) -> dict[str, int]:
    return {name: value for name, value in vars(module).items() if name.isupper() and type(value) is int}


STATED_TWICE = {
    "_kernel/content_order.pxd": content_order,
    "_kernel/fields.pxd": fields,
    "_kernel/framing.pxd": framing,
    "_kernel/kinds.pxd": profiles,
    "_kernel/wire.pxd": wire,
}
# The work of the Python text beside them, in C: their numbers are sizes of what only C has.
WORK = {"_kernel/read_values.pxd", "_kernel/write_values.pxd", "connection/tuples.pxd"}
GENERATED = {"_generated", "_protocol"}


@pytest.mark.parametrize("name", STATED_TWICE)
def test_numbers_in_c_are_those_of_the_python_text(name: str) -> None:
    numbers = numbers_of(STATED_TWICE[name])
    for owner in (wire, codes, foreign):  # of which a text may import some
        if owner is not STATED_TWICE[name] and name.startswith("_kernel/"):
            numbers = {key: value for key, value in numbers.items() if key not in vars(owner)}
    assert constants_of(name) == numbers
    assert numbers


def test_every_text_of_numbers_beside_a_python_text_is_compared() -> None:
    beside = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.pxd")
        if path.with_suffix(".py").exists() and not GENERATED & set(path.parts)
    }
    assert beside | {"_kernel/kinds.pxd"} == set(STATED_TWICE) | WORK


def test_the_last_second_of_a_datetime() -> None:
    assert constants_of("_kernel/civil.pxd") == {"LAST_SECOND": read_values._LAST_SECOND}


def test_every_kind_has_a_number_of_its_own_and_a_name() -> None:
    kinds = numbers_of(profiles)
    assert sorted(kinds.values()) == list(range(1, 31))
    assert set(profiles.KIND_NAMES) == set(kinds.values())


OWNED = {*(name.replace("-", "_").upper() for name in codes.REPLY_NAMES.values()), *numbers_of(wire)} - {
    "BODY"
}
"""Names of reply codes and numbers of frames; `BODY` is also the place of a column in encode_c.pyx."""


def test_reply_codes_and_numbers_of_frames_are_written_in_their_own_texts_alone() -> None:
    stated = re.compile(rf"^ *_?(?:{'|'.join(sorted(OWNED))})\b(?:: \w+)? = \d", re.MULTILINE)
    owners = {PACKAGE / "_kernel/wire.py", PACKAGE / "_kernel/wire.pxd"}
    for path in {*PACKAGE.rglob("*.p[xy][dx]"), *PACKAGE.rglob("*.py")} - owners:
        if not GENERATED & set(path.parts):
            assert stated.findall(path.read_text(encoding="utf-8")) == [], path
    assert stated.findall("    HEADER = 0\nNOT_ALLOWED = 530") == ["    HEADER = 0", "NOT_ALLOWED = 5"]
