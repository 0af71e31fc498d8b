"""The asserts of the specification, on any value that a caller may give a field."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
from support.failures import Failures
from support.implementation import Implementation, method_class

from amqpcodec import EncodeError
from amqpcodec.spec import Assert, FieldSpec


class Liar(str):
    """Text that says of itself whatever it likes."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        raise LookupError("not to be asked")

    def __len__(self) -> int:
        raise LookupError("not to be asked")

    def __eq__(self, other: object) -> bool:
        raise LookupError("not to be asked")

    __hash__ = str.__hash__


class LyingOctets(bytes):
    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        raise LookupError("not to be asked")

    def __len__(self) -> int:
        raise LookupError("not to be asked")

    def __eq__(self, other: object) -> bool:
        raise LookupError("not to be asked")

    __hash__ = bytes.__hash__


class LyingNumber(int):
    def __eq__(self, other: object) -> bool:
        raise LookupError("not to be asked")

    __ne__ = __eq__
    __hash__ = int.__hash__


class Impostor:
    """An object that claims a class which is not its own."""

    def __init__(self, claimed: type) -> None:
        self.claimed = claimed

    @property
    def __class__(self) -> Any:
        return self.claimed

    @__class__.setter
    def __class__(self, claimed: Any) -> None:
        raise AttributeError("the class stays")


CHECKS = [
    Assert("notnull"), Assert("null"), Assert("length", "3"), Assert("regexp", "^[a-z]+$"), Assert("ne", "0"),
    Assert("le", reference="tune.channel-max"), Assert("syntax", "path"), Assert("enum", "add, min"),
]  # fmt: skip


def judged(value: Any) -> list[str]:
    """The checks that a value passes."""
    return [check.check for check in CHECKS if check.holds(value)]


NO_MATTER = ["le", "syntax", "enum"]  # these always pass


@pytest.mark.parametrize(
    ("value", "passed"),
    [
        ("abc", ["notnull", "length", "regexp", "ne"]),
        ("abcd", ["notnull", "regexp", "ne"]),
        ("äa", ["notnull", "length", "ne"]),
        ("ää", ["notnull", "ne"]),
        ("\udcff\udcfe\udcfd", ["notnull", "length", "ne"]),  # each stands for one octet
        ("\ud800", ["notnull", "ne"]),
        ("a\udfff", ["notnull", "ne"]),
        ("", ["null", "length", "ne"]),
        (b"abc", ["notnull", "length", "regexp", "ne"]),
        (b"abcd", ["notnull", "regexp", "ne"]),
        (b"\xff\xfe", ["notnull", "length", "ne"]),
        (b"", ["null", "length", "ne"]),
        (0, ["notnull", "null", "length", "regexp"]),
        (7, ["notnull", "length", "regexp", "ne"]),
    ],
    ids=repr,
)
def test_a_value_is_judged_by_what_it_holds_whatever_its_class_says(value: Any, passed: list[str]) -> None:
    own = {str: Liar, bytes: LyingOctets, int: LyingNumber}[type(value)]
    assert judged(value) == passed + NO_MATTER
    assert judged(own(value)) == passed + NO_MATTER


@pytest.mark.parametrize("claimed", [str, bytes, int, bytearray, memoryview])
def test_what_claims_another_class_is_of_no_type_that_a_check_knows(claimed: type) -> None:
    assert judged(Impostor(claimed)) == ["notnull", "length", "regexp", "ne", *NO_MATTER]


@pytest.mark.parametrize("wrap", [bytearray, memoryview])
def test_octets_are_empty_in_any_form(wrap: Callable[[bytes], Any]) -> None:
    assert "null" in judged(wrap(b""))
    assert "notnull" not in judged(wrap(b""))
    assert "notnull" in judged(wrap(b"x"))


def valid(cls: Any) -> dict[str, Any]:
    """Values of all arguments of a method that have asserts, which they pass."""
    values = {"shortstr": "x", "longstr": b"x"}
    return {each.attribute: values.get(each.type, 1) for each in cls.spec.fields if each.asserts}


def fields(module: ModuleType, *checks: str) -> Iterator[tuple[type, FieldSpec]]:
    """Each argument that has one of these checks, and its class."""
    for cls in module.METHODS.values():
        for field in cls.spec.fields:
            if any(check.check in checks for check in field.asserts):
                yield cls, field


@pytest.mark.parametrize("text", ["\ud800", "a\udc7f"], ids=ascii)
def test_validate_refuses_text_that_no_octets_stand_for(codec: ModuleType, text: str) -> None:
    failures = Failures()
    for cls, field in fields(codec, "length", "regexp"):
        with failures.case(f"{cls.__name__}.{field.attribute}"):
            method = cls(**{**valid(cls), field.attribute: text})
            for attempt in (method.validate, lambda m=method: codec.encode_method(1, m, validate=True)):
                with pytest.raises(EncodeError) as caught:
                    attempt()
                assert (caught.value.field, caught.value.method) == (field.name, cls.spec.name)
    failures.check(at_least=1)


def test_validate_never_asks_a_class_of_the_callers(codec: ModuleType) -> None:
    failures = Failures()
    for cls, field in fields(codec, "notnull", "null", "length", "regexp", "ne"):
        for value in (Liar("x"), Liar(""), LyingOctets(b"x"), LyingNumber(0), Impostor(str)):
            with failures.case(f"{cls.__name__}.{field.attribute} {type(value).__name__}"):
                method = cls(**{**valid(cls), field.attribute: value})
                with suppress(EncodeError):
                    method.validate()
    failures.check(at_least=5)


def test_validate_compares_no_text_with_octets(impl: Implementation) -> None:
    program = f"""
from amqpcodec import _backend
m = _backend.load("amqpcodec._generated.rabbitmq", {impl.name!r})
m.Connection.Open(virtual_host="/").validate()
m.Connection.StartOk({{}}, "PLAIN", b"x", "en_US").validate()
"""
    subprocess.run([sys.executable, "-bb", "-c", program], check=True)


def test_the_first_check_that_fails_is_named(amqp: ModuleType) -> None:
    publish = method_class(amqp, "basic.publish")(exchange="\ud800")
    with pytest.raises(EncodeError, match="breaks the assert length 127") as caught:
        publish.validate()
    assert caught.value.field == "exchange"
