"""`amqpcodec.testing.strategies`: all that they draw goes through both builds, and comes back as it went."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from types import ModuleType, NoneType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.campaign import in_full
from support.implementation import Implementation
from support.outcomes import describe, drain
from support.tiers import of_dialects

from amqpcodec import Message, amqp08, amqp09, rabbitmq
from amqpcodec._protocol.index import DIALECTS
from amqpcodec.testing import strategies

few = settings(
    max_examples=in_full(15, 10), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.fixture(params=of_dialects(DIALECTS))
def dialect(request: pytest.FixtureRequest, impl: Implementation) -> ModuleType:
    return impl.dialect(request.param)


def test_tables_come_back_as_they_went(dialect: ModuleType) -> None:
    @few
    @given(strategies.tables(dialect))
    def check(table: dict[str, Any]) -> None:
        back = dialect.decode_table(dialect.encode_table(table))
        assert (describe(back), list(back)) == (describe(table), list(table))

    check()


def test_methods_come_back_as_they_went(dialect: ModuleType) -> None:
    @few
    @given(strategies.methods(dialect))
    def check(method: Any) -> None:
        [frame] = dialect.FrameDecoder().feed(dialect.encode_method(1, method))
        assert (frame.channel, describe(frame.payload)) == (1, describe(method))

    check()


def test_properties_of_each_class_come_back_as_they_went(dialect: ModuleType) -> None:
    @few
    @given(st.sampled_from([cls.spec.name for cls in dialect.PROPERTIES.values()]).flatmap(kind(dialect)))
    def check(properties: Any) -> None:
        [frame] = dialect.FrameDecoder().feed(dialect.encode_header(1, properties, 5))
        assert (describe(frame.payload.properties), frame.payload.body_size) == (describe(properties), 5)

    check()


def kind(dialect: ModuleType) -> Callable[[str], st.SearchStrategy[Any]]:
    return lambda name: strategies.properties(dialect, name)


def test_the_items_of_a_stream_are_what_a_decoder_makes_of_its_pieces(dialect: ModuleType) -> None:
    @few
    @given(strategies.streams(dialect))
    def check(stream: strategies.Stream) -> None:
        items, error = drain(dialect.MessageDecoder(), stream.pieces)
        assert (describe(items), error) == (describe(list(stream.items)), None)

    check()


def test_broken_streams_are_read_alike_however_they_are_cut(dialect: ModuleType) -> None:
    @few
    @given(strategies.broken_streams(dialect))
    def check(stream: strategies.Stream) -> None:
        by_pieces, of_pieces = drain(dialect.MessageDecoder(), stream.pieces)
        at_once, error = drain(dialect.MessageDecoder(), [stream.octets])
        assert (describe(by_pieces), describe(of_pieces)) == (describe(at_once), describe(error))

    check()


KINDS: dict[str, Callable[[strategies.Stream], bool]] = {
    "as many items as may be": lambda stream: len(stream.items) == 6,
    "no items": lambda stream: not stream.items,
    "empty pieces": lambda stream: b"" in stream.pieces and len(stream.pieces) > 3,
    "several channels": lambda stream: len({item.channel for item in stream.items}) > 2,
    "several messages": lambda stream: sum(isinstance(item, Message) for item in stream.items) > 1,
    "long bodies": lambda stream: any(
        len(item.body) > 50 for item in stream.items if isinstance(item, Message)
    ),
    "frames between those of a message": lambda stream: is_between(stream.octets),
}


def is_between(octets: bytes) -> bool:
    """Return whether frames of a channel come between the header and the bodies of another's message."""
    frames = [(frame.type, frame.channel) for frame in rabbitmq.FrameDecoder().feed(octets)]
    return any(
        (kind, after[0]) == (2, 3) and before != after[1]
        for (kind, _), (_, before), after in zip(frames, frames[1:], frames[2:], strict=False)
    )


@pytest.mark.slow("draws many examples")
def test_streams_of_each_kind_are_drawn_often() -> None:
    seen = dict.fromkeys(KINDS, 0)

    @settings(few, max_examples=200)
    @given(strategies.streams(rabbitmq))
    def look(stream: strategies.Stream) -> None:
        for name, has in KINDS.items():
            seen[name] += has(stream)

    look()
    assert [name for name, times in seen.items() if times < 5] == []


@pytest.mark.slow("draws many examples")
def test_a_third_of_the_broken_streams_is_refused() -> None:
    refused = []

    @settings(few, max_examples=100)
    @given(strategies.broken_streams(rabbitmq))
    def look(stream: strategies.Stream) -> None:
        refused.append(drain(rabbitmq.MessageDecoder(), stream.pieces)[1] is not None)

    look()
    assert sum(refused) > len(refused) / 3


def test_methods_messages_and_properties_are_chosen_by_name() -> None:
    @few
    @given(
        strategies.methods(rabbitmq, "queue", "basic.get"),
        strategies.messages(amqp09, "file.return", channels=st.just(7), max_size=3),
        strategies.properties(amqp09, "stream"),
    )
    def check(method: Any, message: Any, properties: Any) -> None:
        assert method.spec.name == "basic.get" or method.spec.name.startswith("queue.")
        assert (type(message.method), message.channel) == (amqp09.File.Return, 7)
        assert len(message.body) <= 3
        assert type(properties) is amqp09.StreamProperties

    check()


@pytest.mark.slow("draws many examples")
def test_a_profile_says_which_values_are_drawn() -> None:
    @few
    @given(strategies.tables(amqp08), strategies.methods(amqp08, "queue.declare", profile="qpid"))
    def check(table: dict[str, Any], method: Any) -> None:
        amqp08.encode_table(table)
        amqp08.Encoder(profile="qpid").encode_method(1, method)

    check()
    kinds = {type(value) for value in drawn(strategies.values(amqp08, profile="rabbitmq"))}
    assert kinds == {bool, int, float, Decimal, str, bytes, datetime, NoneType, list, dict}
    assert {type(value) for value in drawn(strategies.values(amqp08))} == {int, Decimal, str, datetime, dict}


def drawn(strategy: st.SearchStrategy[Any]) -> list[Any]:
    values = []

    @settings(few, max_examples=300)
    @given(strategy)
    def look(value: Any) -> None:
        values.append(value)

    look()
    return values


def test_asserts_of_the_specification_hold_where_they_are_asked_for() -> None:
    @few
    @given(strategies.methods(rabbitmq, "exchange.declare", "connection.open", validate=True))
    def check(method: Any) -> None:
        method.validate()

    check()
    names = {method.exchange for method in drawn(strategies.methods(rabbitmq, "exchange.declare"))}
    assert not all(name.isascii() for name in names)


@pytest.mark.parametrize(
    "draw",
    [
        lambda amqp: strategies.methods(amqp, "queue", "basic.fetch"),
        lambda amqp: strategies.methods(amqp, "que"),
        lambda amqp: strategies.messages(amqp, "basic.ack"),
        lambda amqp: strategies.properties(amqp, "queue"),
    ],
)
def test_names_that_a_dialect_does_not_have_are_refused(draw: Callable[[ModuleType], object]) -> None:
    with pytest.raises(ValueError, match=r"^rabbitmq-0-9-1 has no (method|content) .*'(\w|\.)+'$"):
        draw(rabbitmq)
