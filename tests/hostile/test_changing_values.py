"""Values that change, or lie, while they are being encoded: refused, or written as one state of them."""

from __future__ import annotations

import threading
from collections import UserDict
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from types import ModuleType
from typing import Any, ClassVar
from unittest import mock

import pytest
from support.implementation import Implementation
from support.interpreter import of_full_stack
from support.outcomes import encoding

from amqpcodec import EncodeError, FieldValue, InlineContent


class Meddler(UserDict[str, Any]):
    """A mapping that does something when it is read."""

    def __init__(self, deed: Callable[[], Any]) -> None:
        super().__init__(key=1)
        self.deed = deed

    def items(self) -> Any:
        self.deed()
        return super().items()


CHANGES: dict[str, Callable[[list[Any]], Any]] = {
    "append": lambda items: items.append(1),
    "append without end": lambda items: items.append(Meddler(lambda: items.append(1))),
    "insert": lambda items: items.insert(0, 1),
    "clear": lambda items: items.clear(),
    "remove": lambda items: items.pop(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_list_that_changes_is_refused(impl: Implementation, change: str) -> None:
    items: list[Any] = []
    items += [0, Meddler(lambda: CHANGES[change](items)), 2]
    with pytest.raises(EncodeError, match="changed while being encoded"):
        impl.tables.encode_table({"list": items})


def rename_a_key(table: dict[str, Any]) -> None:
    """A dict of the same size with other keys."""
    del table["first"]
    table["z"] = 1


@pytest.mark.parametrize(
    "change", [dict.clear, lambda table: table.update(new=1), dict.popitem, rename_a_key]
)
def test_a_dict_that_changes_is_refused(impl: Implementation, change: Callable[[Any], Any]) -> None:
    table: dict[str, Any] = {"first": 0}
    table |= {"meddler": Meddler(lambda: change(table)), "last": 2}
    with pytest.raises(EncodeError, match="changed while being encoded"):
        impl.tables.encode_table(table)


def test_properties_that_vanish_are_written_as_they_were(amqp: ModuleType) -> None:
    properties = amqp.BasicProperties(correlation_id="c", message_id="m")
    properties.headers = Meddler(lambda: setattr(properties, "message_id", None))
    [frame] = amqp.FrameDecoder().feed(amqp.encode_header(1, properties, 0))
    assert frame.payload.properties == amqp.BasicProperties(
        correlation_id="c", message_id="m", headers={"key": 1}
    )


def test_properties_that_appear_are_left_out(amqp: ModuleType) -> None:
    properties = amqp.BasicProperties()
    properties.headers = Meddler(lambda: setattr(properties, "message_id", "late"))
    [frame] = amqp.FrameDecoder().feed(amqp.encode_header(1, properties, 0))
    assert frame.payload.properties == amqp.BasicProperties(headers={"key": 1})


class Tricky(int):
    """An int whose every special method says something else, and does it with a side effect."""

    asked: ClassVar[list[str]] = []

    def __index__(self) -> int:
        self.asked.append("index")
        return 7

    __int__ = __pos__ = __neg__ = __abs__ = __trunc__ = __index__

    def __str__(self) -> str:
        self.asked.append("str")
        return "seven"

    __repr__ = __format__ = __str__  # type: ignore[assignment]

    def __lt__(self, other: object) -> bool:
        self.asked.append("compared")
        return True

    __le__ = __gt__ = __ge__ = __eq__ = __lt__  # type: ignore[assignment]
    __hash__ = int.__hash__

    def __sub__(self, other: object) -> Any:
        return 0

    __add__ = __radd__ = __rsub__ = __and__ = __rshift__ = __sub__


class TrickyText(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "x" * 300

    __repr__ = __str__

    def __len__(self) -> int:
        return 1

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return b"y" * 300

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("I")


NUMBERS = {
    "octet": (lambda m, v: m.Connection.Start(v), 255),
    "short": (lambda m, v: m.Connection.Tune(v), 65535),
    "long": (lambda m, v: m.Connection.Tune(0, v), 2**32 - 1),
    "longlong": (lambda m, v: m.Basic.Ack(v), 2**64 - 1),
    "in a table": (lambda m, v: m.Queue.Declare(arguments={"k": v, "tagged": FieldValue("l", v)}), 2**63 - 1),
}


@pytest.mark.parametrize("location", NUMBERS)
def test_an_int_goes_out_as_the_number_it_holds(amqp: ModuleType, location: str) -> None:
    make, most = NUMBERS[location]
    Tricky.asked.clear()
    assert amqp.encode_method(1, make(amqp, Tricky(most))) == amqp.encode_method(1, make(amqp, most))
    for wrong in (most + 1, -(2**63) - 1):
        with pytest.raises(EncodeError, match=r"must be|carries an int|cannot carry \d+"):
            amqp.encode_method(1, make(amqp, Tricky(wrong)))
    assert Tricky.asked == []


@pytest.mark.parametrize("size", [0, -5, 7, 8, 100], ids=str)
def test_frame_max_is_the_number_it_holds(both: tuple[Implementation, Implementation], size: int) -> None:
    for given in (Tricky(size), size):
        outcomes = []
        for impl in both:
            m = impl.dialect("rabbitmq-0-9-1")
            call = (1, m.Basic.Publish(), None, b"x" * 300)
            outcomes.append(encoding(lambda *a, m=m: m.encode_message(*a, frame_max=given), *call))  # noqa: B023
        assert outcomes[0] == outcomes[1]
        assert outcomes[0][0] == ("octets" if size in (0, 100) else "EncodeError")


@pytest.mark.parametrize("wrong", [9.5, "4096", 5j, False, 0.0, Decimal(0)], ids=repr)
def test_frame_max_must_be_an_int(amqp: ModuleType, wrong: Any) -> None:
    calls = (
        lambda: amqp.encode_body(1, b"", frame_max=wrong),
        lambda: amqp.encode_method(1, amqp.Basic.Ack(), frame_max=wrong),
        lambda: amqp.encode_message(1, amqp.Basic.Publish(), None, b"", frame_max=wrong),
    )
    for call in calls:
        with pytest.raises(EncodeError, match="frame_max must be an int"):
            call()


def test_text_goes_out_as_the_characters_it_holds(impl: Implementation) -> None:
    table = {TrickyText("k"): TrickyText("v"), "tagged": FieldValue("S", TrickyText("w"))}
    assert impl.tables.encode_table(table) == impl.tables.encode_table({"k": "v", "tagged": "w"})


@pytest.mark.parametrize("tag", ["", "II", "Ā", "z", "\ud800"])
def test_a_tag_is_the_character_it_holds(impl: Implementation, tag: str) -> None:
    with pytest.raises(EncodeError, match="has no tag"):
        impl.tables.encode_table({"k": FieldValue(TrickyText(tag), 1)})
    assert impl.tables.encode_table({"k": FieldValue(TrickyText("I"), 1)}) == impl.tables.encode_table(
        {"k": 1}
    )


CLAIMED = [int, bool, str, bytes, bytearray, float, list, datetime, Decimal]


@pytest.mark.parametrize("claimed", CLAIMED, ids=lambda cls: cls.__name__)
def test_what_claims_to_be_of_another_class_is_refused(impl: Implementation, claimed: type) -> None:
    impostor = mock.Mock(spec=claimed)
    assert isinstance(impostor, claimed)
    amqp = impl.dialect("rabbitmq-0-9-1")
    for attempt in (
        lambda: amqp.encode_table({"k": impostor}),
        lambda: amqp.encode_method(1, amqp.Basic.Ack(impostor)),
        lambda: amqp.encode_method(1, amqp.Queue.Declare(queue=impostor)),
        lambda: amqp.encode_method(impostor, amqp.Basic.Ack()),
        lambda: amqp.encode_header(1, amqp.BasicProperties(timestamp=impostor), 0),
        lambda: amqp.encode_body(1, impostor),
        lambda: impl.dialect("amqp-0-9").encode_method(
            1, impl.dialect("amqp-0-9").Message.Transfer(body=InlineContent(impostor))
        ),
    ):
        with pytest.raises(EncodeError):
            attempt()


def test_chunks_of_a_body_must_be_octets(impl: Implementation, amqp: ModuleType) -> None:
    for body in ([1], [b"fine", "text"], [None]):
        message = impl.records.Message(1, amqp.Basic.Publish(), None, body, True)
        with pytest.raises(EncodeError, match="a body must be bytes-like"):
            amqp.encode(message)


def test_errors_of_the_callers_own_code_come_out_as_they_are(impl: Implementation) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        impl.tables.encode_table({"inner": Meddler(fail)})


class Late(Meddler):
    """A mapping that does it only when its first item is asked for."""

    def items(self) -> Any:
        self.deed()
        yield "key", 1


REENTERING: dict[str, Callable[[ModuleType, Any], Any]] = {
    "table": lambda m, v: m.encode_table(v),
    "arguments": lambda m, v: m.encode_method(1, m.Queue.Declare(arguments=v)),
    "headers": lambda m, v: m.encode_header(1, m.BasicProperties(headers=v), 0),
    "inner table": lambda m, v: m.encode_table({"k": v}),
    "tagged table": lambda m, v: m.encode_table({"k": FieldValue("F", v)}),
}


@pytest.mark.parametrize("kind", [Meddler, Late])
@pytest.mark.parametrize("location", REENTERING)
def test_a_mapping_that_reenters_the_encoder_is_stopped_by_the_full_stack(
    amqp: ModuleType, location: str, kind: type[Meddler]
) -> None:
    mapping = kind(lambda: REENTERING[location](amqp, mapping))

    def from_below(levels: int) -> None:
        if levels:
            from_below(levels - 1)
        else:
            REENTERING[location](amqp, mapping)

    for levels in range(12):  # so that the stack is full in one place or another
        with pytest.raises((RecursionError, TypeError)) as caught:
            from_below(levels)
        assert of_full_stack(caught.value)


class Undecided(UserDict[str, Any]):
    """A mapping that fails when asked what it is."""

    @property
    def __class__(self) -> type:
        raise ZeroDivisionError


@pytest.mark.parametrize("location", REENTERING)
def test_an_error_of_asking_what_a_value_is_comes_out_as_it_is(amqp: ModuleType, location: str) -> None:
    with pytest.raises(ZeroDivisionError):
        REENTERING[location](amqp, Undecided(key=1))


def test_an_error_of_asking_what_a_content_is_comes_out_as_it_is(impl: Implementation) -> None:
    module = impl.dialect("amqp-0-9")
    with pytest.raises(ZeroDivisionError):
        module.encode_method(1, module.Message.Transfer(body=Undecided()))


def test_values_that_other_threads_change(impl: Implementation) -> None:
    """Whatever comes out is one table that can be read; or it is refused."""
    table: dict[str, Any] = {f"key{number}": [number] * 20 for number in range(20)}
    over = threading.Event()

    def change() -> None:
        number = 0
        while not over.is_set():
            number += 1
            table[f"key{number % 25}"] = [number] * (number % 30)
            table.pop(f"key{number * 7 % 25}", None)
            for value in list(table.values())[:3]:
                value.append(number)

    threads = [threading.Thread(target=change) for _ in range(2)]
    for thread in threads:
        thread.start()
    outcomes = {"octets": 0, "EncodeError": 0}
    try:
        for _ in range(400):
            outcome = encoding(impl.tables.encode_table, table)
            outcomes[outcome[0]] += 1
            if outcome[0] == "octets":
                found: Mapping[str, Any] = impl.tables.decode_table(outcome[1])
                assert all(key.startswith("key") for key in found)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert sum(outcomes.values()) == 400
