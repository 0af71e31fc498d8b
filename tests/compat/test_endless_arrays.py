"""Arrays of a tolerant pamqp 3.3, by a stand-in for its module: the release does not have to be installed."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import pytest
from support.marks import replaces

pytestmark = replaces


@pytest.fixture
def decode() -> Any:
    """A module that notes what its own function is asked; an item begins with the number of its octets."""
    stand_in = ModuleType("pamqp.decode")
    asked: list[bytes] = []

    def field_array(value: bytes) -> tuple[int, list[Any]]:
        asked.append(value)
        return len(value), ["stock"]

    vars(stand_in).update(
        field_array=field_array, embedded_value=lambda value: (value[0], value[: value[0]]), asked=asked
    )
    return stand_in


@pytest.fixture
def field_array(decode: Any) -> Any:
    pytest.importorskip("pamqp")
    from amqpcodec.compat import _pamqp

    return _pamqp._checked_array(decode)


@pytest.mark.parametrize("value", [b"", b"\0\0\0", b"\0\0\0\0", b"\0\0\0\4abcd", b"\0\0\0\2abcd"])
def test_an_array_that_is_all_there_is_read_by_pamqp(field_array: Any, decode: Any, value: bytes) -> None:
    assert field_array.__name__ == "field_array"
    assert (field_array(value), decode.asked) == ((len(value), ["stock"]), [value])


def test_an_array_that_is_longer_than_its_octets_ends_with_them(field_array: Any, decode: Any) -> None:
    with pytest.raises(struct.error, match=r"^Field array length exceeds available data$"):
        field_array(b"\0\0\0\6\2a\2b")
    assert decode.asked == []


def test_an_item_that_is_longer_than_the_octets_ends_the_array_as_pamqp_does(
    field_array: Any, decode: Any
) -> None:
    assert field_array(b"\0\0\0\6\2a\4b") == (10, [b"\2a", b"\4b"])
    assert decode.asked == []
