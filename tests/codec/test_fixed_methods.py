"""Methods whose arguments are all numbers and bits: the compiled build writes their frames by a fast path."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from support.encoder_values import INTEGERS, IntChild
from support.implementation import Implementation
from support.outcomes import describe

from amqpcodec import EncodeError

FIXED = {"bit", "octet", "short", "long", "longlong"}
SMALL = 2**30  # where an int of CPython needs another digit
OTHERS = [None, True, False, 1.0, "text", b"octets", IntChild(5), IntChild(300), IntChild(-1)]
VALUES = [SMALL - 1, SMALL, *INTEGERS, *OTHERS]


def fixed_methods(module: ModuleType) -> list[Any]:
    return [cls for cls in module.METHODS.values() if all(field.type in FIXED for field in cls.spec.fields)]


def filled(cls: Any, value: Any, other: int) -> Iterator[Any]:
    """Instances with the value in each of their fields, the other ones true or a number."""
    for field in cls.spec.fields or [None]:
        method = cls()
        for each in cls.spec.fields:
            setattr(method, each.attribute, each.type == "bit" or other)
        if field is not None:
            setattr(method, field.attribute, value)
        yield method


def outcome(module: ModuleType, channel: Any, method: Any, **options: Any) -> Any:
    try:
        return module.encode_method(channel, method, **options)
    except EncodeError as error:
        return describe(error.args), error.field, error.method, str(error)


def test_each_value_gives_one_frame_or_error_by_whatever_path(
    both: tuple[Implementation, Implementation], dialect: str
) -> None:
    compiled, pure = (each.dialect(dialect) for each in both)
    classes = list(zip(fixed_methods(compiled), fixed_methods(pure), strict=True))
    assert len(classes) >= 20
    for ours, theirs in classes:
        for value in VALUES:
            for method, twin in zip(filled(ours, value, 7), filled(theirs, value, 7), strict=True):
                found = outcome(compiled, 3, method)
                assert found == outcome(compiled, 3, method, frame_max=0)  # the slow path
                assert found == outcome(pure, 3, twin)


@pytest.mark.parametrize("channel", [0, 1, 255, 256, 65535, 65536, -1, True, None, "1", 1.0, 2**40])
def test_each_channel_gives_one_frame_or_error(
    both: tuple[Implementation, Implementation], channel: Any
) -> None:
    compiled, pure = (each.dialect("rabbitmq-0-9-1") for each in both)
    found = outcome(compiled, channel, compiled.BasicAck(5, True))
    assert found == outcome(compiled, channel, compiled.BasicAck(5, True), frame_max=0)
    assert found == outcome(pure, channel, pure.BasicAck(5, True))


def test_a_frame_is_read_back(amqp: ModuleType) -> None:
    for cls in fixed_methods(amqp):
        for method in (cls(), *filled(cls, True, 255)):
            for field in cls.spec.fields:
                if field.type != "bit":
                    setattr(method, field.attribute, 200)
            [frame] = amqp.FrameDecoder().feed(amqp.encode_method(1, method))
            assert frame.payload == method


def test_a_frame_has_the_size_that_was_agreed_at_most(amqp: ModuleType) -> None:
    ack = amqp.BasicAck(1)
    assert len(amqp.Encoder(frame_max=21).encode_method(1, ack)) == 21
    with pytest.raises(EncodeError, match="frame of 21 octets, frame_max 20"):
        amqp.Encoder(frame_max=20).encode_method(1, ack)
    with pytest.raises(EncodeError, match="frame of 21 octets, frame_max 20"):
        amqp.encode_method(1, ack, frame_max=20)


def test_a_subclass_is_written_as_its_base(amqp: ModuleType) -> None:
    class Settled(amqp.BasicAck):  # type: ignore[name-defined,misc]
        pass

    assert amqp.encode_method(1, Settled(9, True)) == amqp.encode_method(1, amqp.BasicAck(9, True))


def test_methods_of_other_dialects_are_refused(impl: Implementation) -> None:
    ours, other = impl.dialect("rabbitmq-0-9-1"), impl.dialect("amqp-0-9-1")
    with pytest.raises(EncodeError, match="a method of amqp-0-9-1, not of rabbitmq-0-9-1"):
        ours.encode_method(1, other.BasicAck(1))


def test_asserts_are_checked_when_asked_for(impl: Implementation) -> None:
    amqp = impl.dialect("amqp-0-8")
    ticket = amqp.AccessRequestOk(0)
    assert amqp.encode_method(1, ticket)
    with pytest.raises(EncodeError, match="ticket"):
        amqp.encode_method(1, ticket, validate=True)
