"""Tables as each release reads and writes them, by the rules alone: none has to be installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest

from amqpcodec.compat import _rules
from amqpcodec.profiles import KIND_NAMES, TableProfile


class Long(int):
    """Stands for `pika.compat.long`."""


@pytest.fixture(autouse=True)
def _pika(monkeypatch: pytest.MonkeyPatch) -> None:
    compat = ModuleType("pika.compat")
    vars(compat)["long"] = Long
    monkeypatch.setitem(sys.modules, "pika", ModuleType("pika"))
    monkeypatch.setitem(sys.modules, "pika.compat", compat)


PROFILES: dict[str, Callable[[str], TableProfile]] = {
    "pamqp": _rules.pamqp_profile, "pika": _rules.pika_profile, "amqp": _rules.amqp_profile,
}  # fmt: skip
SHARED = {
    "t": "bool", "u": "uint16", "I": "int32", "i": "uint32", "A": "array", "F": "table", "V": "void",
}  # fmt: skip
IN_PAMQP = {
    "b": "int8", "B": "uint8", "s": "int16", "l": "int64", "L": "int64", "f": "float", "d": "double",
    "S": "longstr", "x": "bytearray", "T": "timestamp of 32 bits", "\0": "void",
}  # fmt: skip
IN_PIKA = {
    "s": "int16", "U": "int16", "L": "int64 of a class", "f": "truncated float", "d": "truncated double",
    "S": "longstr", "x": "octets", "D": "scaled decimal",
}  # fmt: skip
IN_AMQP = {
    "U": "int16", "L": "int64", "f": "float", "d": "double", "S": "text", "x": "octets",
    "D": "divided decimal",
}  # fmt: skip
SIGNED, SWAPPED = {"b": "int8", "B": "uint8"}, {"b": "uint8", "B": "int8"}
NAIVE = {"T": "naive timestamp"}
READ = {
    "pamqp 3.3": IN_PAMQP,
    "pamqp 4.0": IN_PAMQP | {"D": "scaled decimal"},
    "pika 1.3": IN_PIKA | SWAPPED | (NAIVE if sys.version_info < (3, 12) else {}),
    "pika 1.4": IN_PIKA | SIGNED | {"l": "int64 of a class", "T": "aware timestamp"},
    "amqp 5.2": IN_AMQP | SWAPPED | {"s": "shortstr", "l": "uint64"},
    "amqp 5.4.0": IN_AMQP | SWAPPED | {"s": "int16", "l": "int64"} | NAIVE,
    "amqp 5.4.1": IN_AMQP | SIGNED | {"s": "int16", "l": "int64"} | NAIVE,
    "amqp 5.4.2": IN_AMQP | SIGNED | {"s": "int16", "l": "int64"} | NAIVE,
}

IN_ALL_AMQP = (("I", 4, -2147483647, 2147483647), ("L", 8, -9223372036854775808, 9223372036854775807))
INTEGERS = {
    "pamqp 3.3": (
        ("b", 1, 0, 127), ("s", 2, 128, 32767), ("s", 2, -32768, -129), ("u", 2, 0, 65535),
        ("I", 4, 0, 2147483647), ("I", 4, -2147483648, -32769), ("i", 4, 0, 4294967295),
        ("l", 8, 0, 9223372036854775807), ("l", 8, -9223372036854775808, -2147483649),
    ),
    "pamqp 4.0": (
        ("b", 1, -128, 127), ("s", 2, -32768, 32767), ("u", 2, 0, 65535), ("I", 4, -2147483648, 2147483647),
        ("i", 4, 0, 4294967295), ("l", 8, -9223372036854775808, 9223372036854775807),
    ),
    "pika 1.3": (
        ("I", 4, -2147483648, 2147483647), ("L", 8, -9223372036854775808, -1),
        ("l", 8, 0, 9223372036854775807),
    ),
    "pika 1.4": (("I", 4, -2147483648, 2147483647), ("l", 8, -9223372036854775808, 9223372036854775807)),
    "amqp 5.2": IN_ALL_AMQP, "amqp 5.4.0": IN_ALL_AMQP, "amqp 5.4.1": IN_ALL_AMQP, "amqp 5.4.2": IN_ALL_AMQP,
}  # fmt: skip

OTHERS: dict[str, dict[str, Any]] = {
    "pamqp": {"float_tag": "f", "bytearray_tag": "x", "sorted_keys": True, "longest_key": 128},
    "pika": {"octets_as_text": True, "own_int": Long, "octets_tag": "x"},
    "amqp": {"float_tag": "d", "octets_tag": "S", "tuples": True},
}
NOTHING = {
    "octets_as_text": False, "own_int": None, "float_tag": "", "octets_tag": "", "bytearray_tag": "",
    "tuples": False, "sorted_keys": False, "longest_key": 255,
}  # fmt: skip
DECIMALS: dict[str, dict[str, tuple[int, int]]] = {
    "pamqp 4.0": {"1.50": (2, 150), "-0.5": (1, -5), "7": (0, 7), "12E+2": (0, 1200), "0.00": (2, 0)},
    "pika": {"1.50": (1, 15), "-0.5": (1, -5), "7": (0, 7), "12E+2": (0, 1200), "0.00": (0, 0)},
    "amqp": {"1.50": (2, 150), "-0.5": (1, -5), "7": (0, 7), "12E+2": (-2, 12), "0.00": (2, 0)},
}


def profile(release: str) -> TableProfile:
    library, _, rules = release.partition(" ")
    return PROFILES[library](rules)


@pytest.mark.parametrize("release", READ)
def test_each_tag_is_read_as_the_release_reads_it(release: str) -> None:
    found = profile(release)
    assert {tag: KIND_NAMES[kind] for tag, kind in found.tags.items()} == SHARED | READ[release]
    assert found.name == release
    assert not found.tolerated


@pytest.mark.parametrize("release", INTEGERS)
def test_each_integer_gets_the_tag_that_the_release_gives_it(release: str) -> None:
    values = profile(release).values
    assert values is not None
    assert values.integers == INTEGERS[release]


@pytest.mark.parametrize("release", READ)
def test_other_values_are_written_as_the_release_writes_them(release: str) -> None:
    values = profile(release).values
    assert values is not None
    found = {name: getattr(values, name) for name in NOTHING}
    assert found == NOTHING | OTHERS[release.partition(" ")[0]]


@pytest.mark.parametrize("release", READ)
def test_decimals_get_the_scale_and_mantissa_that_the_release_gives_them(release: str) -> None:
    values = profile(release).values
    assert values is not None
    library = release.partition(" ")[0]
    expected = DECIMALS.get(release) or DECIMALS.get(library)
    if expected is None:  # it reads what it wrote as another number
        assert values.decimal is None
        return
    scaled = values.decimal
    assert scaled is not None
    assert {text: scaled(Decimal(text)) for text in expected} == expected
    for text in ("NaN", "Infinity", "-Infinity"):
        with pytest.raises(TypeError):
            scaled(Decimal(text))
