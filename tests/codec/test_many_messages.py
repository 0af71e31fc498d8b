"""`encode_messages`: pieces of whole messages, and what becomes of errors."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation

from amqpcodec import EncodeError

PIECE = 65536
SIZES = [*range(0, 4000, 37), 70000, 10, 65536 - 81, 65536 - 82, 65536 - 80, 5, 200000, 0, 40000, 40000]


def message(amqp: ModuleType, body: Any, **properties: Any) -> tuple[Any, ...]:
    return 1, amqp.BasicPublish("orders", "eu"), amqp.BasicProperties(**properties), body


def test_pieces_are_the_messages_one_after_the_other(amqp: ModuleType) -> None:
    messages = [message(amqp, b"x" * size, message_id=str(size)) for size in SIZES]
    pieces = list(amqp.encode_messages(iter(messages)))
    assert b"".join(pieces) == b"".join(amqp.encode_message(*each) for each in messages)
    assert all(type(piece) is bytes for piece in pieces)


def test_pieces_hold_whole_messages_as_many_as_fit(amqp: ModuleType) -> None:
    messages = [message(amqp, b"x" * size) for size in SIZES]
    lengths = [len(amqp.encode_message(*each)) for each in messages]
    expected: list[int] = []
    open_piece = False
    for length in lengths:
        if open_piece and expected[-1] + length <= PIECE:
            expected[-1] += length
        else:
            expected.append(length)
        open_piece = expected[-1] < PIECE
    assert list(map(len, amqp.encode_messages(messages))) == expected


def test_all_that_encode_message_takes(amqp: ModuleType) -> None:
    class Own(amqp.BasicPublish):  # type: ignore[name-defined,misc]
        pass

    messages = [
        (1, amqp.BasicPublish(), None, b""), (2, Own(), amqp.BasicProperties(), bytearray(b"octets")),
        (3, amqp.BasicDeliver(), amqp.BasicProperties(headers={"é": "ü", "d": {}}), memoryview(b"octets")),
        (4, amqp.BasicPublish(), amqp.BasicProperties(headers={"x": "y" * 9000}), b"x" * 300000),
    ]  # fmt: skip
    assert b"".join(amqp.encode_messages(messages)) == b"".join(
        amqp.encode_message(*each) for each in messages
    )
    assert b"".join(amqp.encode_messages(messages, frame_max=9100, validate=True)) == b"".join(
        amqp.encode_message(*each, frame_max=9100) for each in messages
    )
    assert list(amqp.encode_messages([])) == []


@pytest.mark.parametrize("count", [0, 1, 5, 400])
def test_an_error_says_which_message_and_loses_none_before_it(amqp: ModuleType, count: int) -> None:
    good = message(amqp, b"x" * 200)
    bad = message(amqp, b"", priority=256)
    pieces = amqp.encode_messages([*[good] * count, bad, good])
    taken: list[bytes] = []
    with pytest.raises(EncodeError) as caught:
        taken.extend(iter(lambda: next(pieces), None))
    octets = b"".join(taken)
    assert octets == amqp.encode_message(*good) * count
    assert caught.value.index == count
    assert str(caught.value) == f"message {count}: basic.priority: octet must be 0 to 255, not 256"
    assert caught.value.field == "priority"
    assert list(pieces) == []


@pytest.mark.parametrize(
    ("item", "name"), [(None, "NoneType"), ((), "tuple"), ((1, 2, 3), "tuple"), ([1, 2, 3, 4], "list")]
)
def test_what_is_no_message_is_refused(amqp: ModuleType, item: Any, name: str) -> None:
    expected = f"message 0: expected a tuple of channel, method, properties and body, not {name}"
    with pytest.raises(EncodeError, match=expected):
        next(amqp.encode_messages([item]))
    with pytest.raises(TypeError):
        amqp.encode_messages(item if item is None else 7)


def test_an_error_of_the_iterable_comes_after_what_it_gave(amqp: ModuleType) -> None:
    good = message(amqp, b"x")

    def failing() -> Iterator[Any]:
        yield good
        raise KeyError("gone")

    pieces = amqp.encode_messages(failing())
    assert next(pieces) == amqp.encode_message(*good)
    with pytest.raises(KeyError, match="gone"):
        next(pieces)
    with pytest.raises(StopIteration):
        next(pieces)


def test_a_wrong_frame_max_is_refused_at_once(amqp: ModuleType) -> None:
    with pytest.raises(EncodeError, match="frame_max must be 0 or more than 8, not 8"):
        amqp.encode_messages([], frame_max=8)


def test_messages_are_taken_as_they_are_asked_for(amqp: ModuleType) -> None:
    taken = []

    def counted() -> Iterator[Any]:
        for number in range(10):
            taken.append(number)
            yield message(amqp, b"x" * 40000)

    pieces = amqp.encode_messages(counted())
    assert taken == []
    next(pieces)
    assert taken == [0, 1]  # the second did not fit
    next(pieces)
    assert taken == [0, 1, 2]


def test_an_iterable_that_asks_for_the_next_piece_is_refused(amqp: ModuleType) -> None:
    seen: list[Any] = []

    def asking() -> Iterator[Any]:
        with pytest.raises(ValueError, match="the next piece is being made"):
            next(pieces)
        seen.append(True)
        yield message(amqp, b"x")

    pieces = amqp.encode_messages(asking())
    assert len(list(pieces)) == len(seen) == 1


def raw_properties(impl: Implementation, octets: bytes, class_id: int, dialect: str) -> Any:
    """Return properties that stay octets."""
    own = impl.dialect(dialect).DIALECT
    return impl.kernel("rawproperties").RawProperties(octets, class_id, own)


def test_raw_properties_are_forwarded_as_they_are(impl: Implementation) -> None:
    amqp = impl.dialect("rabbitmq-0-9-1")
    # A flag of no property, which is not written this way by anybody.
    odd = raw_properties(impl, b"\x80\x02\x04text", 60, "rabbitmq-0-9-1")
    messages = [
        (1, amqp.BasicDeliver("tag", number, False, "x", "key"), odd, b"x" * number) for number in range(2000)
    ]
    octets = b"".join(amqp.encode_messages(messages))
    assert octets == b"".join(amqp.encode_message(*each) for each in messages)
    assert octets.count(odd.octets) == len(messages)


@pytest.mark.parametrize(
    ("dialect", "class_id", "name"), [("amqp-0-9-1", 60, "basic"), ("amqp-0-8", 70, "file")]
)
def test_raw_properties_of_another_dialect_are_refused(
    impl: Implementation, dialect: str, class_id: int, name: str
) -> None:
    amqp = impl.dialect("rabbitmq-0-9-1")
    foreign = raw_properties(impl, b"\0\0", class_id, dialect)
    pieces = amqp.encode_messages([message(amqp, b"x"), (1, amqp.BasicPublish(), foreign, b"")])
    assert next(pieces) == amqp.encode_message(*message(amqp, b"x"))
    with pytest.raises(EncodeError) as caught:
        next(pieces)
    assert str(caught.value) == f"message 1: {name}: properties of {dialect}, not of rabbitmq-0-9-1"


def test_raw_properties_of_another_class_are_refused(impl: Implementation) -> None:
    amqp = impl.dialect("amqp-0-8")
    file = raw_properties(impl, b"\0\0", 70, "amqp-0-8")
    for encode in (amqp.encode_message, lambda *each: next(amqp.encode_messages([each]))):
        with pytest.raises(EncodeError, match="properties of class file do not belong to it"):
            encode(1, amqp.BasicPublish(), file, b"")


def test_the_index_survives_a_pickle(impl: Implementation) -> None:
    import pickle

    amqp = impl.dialect("rabbitmq-0-9-1")
    with pytest.raises(EncodeError) as caught:
        list(amqp.encode_messages([message(amqp, None)]))
    assert pickle.loads(pickle.dumps(caught.value)).index == 0
