"""Frames of contents out of order: one rule, whoever puts the frames together."""

from __future__ import annotations

import io
from collections.abc import Iterator
from types import ModuleType

import pytest
from support.implementation import Implementation

from amqpcodec import DecodeError, amqp08, capture
from amqpcodec._kernel.content_order import (
    BEFORE_HEADER,
    CUT_OFF,
    IN_BODY,
    IN_ORDER,
    NO_CONTENT,
    NO_HEADER,
    NO_METHOD,
    OTHER_CLASS,
    SECOND_HEADER,
    TOO_LARGE,
    TOO_MUCH,
    judge_body,
    judge_header,
    judge_method,
)

Refusal = tuple[int, str, int]  # reply code, text, offset

# A dialect with several content classes; on channel 1.
FRAMES = {
    "select": amqp08.encode_method(1, amqp08.Tx.Select()),
    "publish": amqp08.encode_method(1, amqp08.Basic.Publish(1, "x", "k")),
    "header of 0": amqp08.encode_header(1, amqp08.BasicProperties(), 0),
    "header of 3": amqp08.encode_header(1, amqp08.BasicProperties(), 3),
    "header of a file": amqp08.encode_header(1, amqp08.FileProperties(), 3),
    "header of no class": b"\x02\0\1\0\0\0\x0e\0\x14\0\0" + bytes(7) + b"\x03\0\0\xce",
    "body of 0": amqp08.encode_body(1, b""),
    "body of 1": amqp08.encode_body(1, b"1"),
    "body of 2": amqp08.encode_body(1, b"12"),
}
MOST = 5
BEFORE = FRAMES["select"]  # captures know the channel by it, so that nothing is taken for a rest


def by_decoder(module: ModuleType, octets: bytes) -> Refusal | None:
    try:
        list(module.MessageDecoder(expect_header=False).feed(octets))
    except DecodeError as error:
        return error.reply_code, error.message, error.offset
    return None


def out_of_order(module: ModuleType) -> Iterator[tuple[bytes, Refusal | None]]:
    """Every sequence of up to five frames, up to its first frame that is refused; then what is said of it."""
    sequences = [BEFORE]
    for _ in range(MOST):
        longer = [sequence + frame for sequence in sequences for frame in FRAMES.values()]
        judged = [(sequence, by_decoder(module, sequence)) for sequence in longer]
        yield from judged
        sequences = [sequence for sequence, refusal in judged if refusal is None]


@pytest.fixture(scope="module")
def judged(impl: Implementation) -> list[tuple[bytes, Refusal | None]]:
    return list(out_of_order(impl.dialect("amqp-0-8")))


def test_sequences_of_up_to_five_frames_are_refused_in_these_words(
    judged: list[tuple[bytes, Refusal | None]],
) -> None:
    assert {refusal[1] for _, refusal in judged if refusal is not None} == {
        "method basic.publish before the end of a basic.publish",
        "method tx.select before the end of a basic.publish",
        "content header without a method before it",
        "second content header after a method",
        "content header of class file after basic.publish",
        "content header of class 20 after basic.publish",
        "class 20 carries no content",  # where no method came before
        "body without a content header before it",
        "body of 4 octets, 3 announced",
    }


def test_columns_refuse_what_the_message_decoder_refuses(
    impl: Implementation, judged: list[tuple[bytes, Refusal | None]]
) -> None:
    columns = pytest.importorskip("support.columns")
    for octets, expected in judged:
        found = None
        try:
            columns.stream_rows(impl.name, "messages", octets, dialect="amqp-0-8", mode="fail")
        except DecodeError as error:
            found = error.reply_code, error.message, error.offset
        assert found == expected, octets


def test_the_command_refuses_what_the_message_decoder_refuses(
    impl: Implementation, judged: list[tuple[bytes, Refusal | None]]
) -> None:
    for octets, expected in judged:
        if octets.endswith(FRAMES["header of no class"]):
            continue  # whoever reads frames has reported it before they are put together
        messages, found = impl.cli("messages").Messages(0), None
        for item in capture.read_raw_frames(io.BytesIO(octets), dialect="amqp-0-8"):
            for shown in messages.feed(item, True, None):
                if found is None and isinstance(shown, capture.Fault):
                    found = shown.reply_code, shown.message, shown.offset + 1
        assert found == expected, octets


@pytest.mark.parametrize("stage", [NO_CONTENT, BEFORE_HEADER, IN_BODY])
def test_each_stage_has_one_verdict_on_each_frame(stage: int) -> None:
    header = {NO_CONTENT: NO_METHOD, BEFORE_HEADER: IN_ORDER, IN_BODY: SECOND_HEADER}[stage]
    assert judge_method(stage) == (IN_ORDER if stage == NO_CONTENT else CUT_OFF)
    assert judge_header(stage, True, 7, 7) == header
    assert judge_header(stage, False, 8, 7) == (header or OTHER_CLASS)
    assert judge_header(stage, True, 8, 7) == (header or TOO_LARGE)
    assert judge_body(stage, 7, 7) == (IN_ORDER if stage == IN_BODY else NO_HEADER)
    assert judge_body(stage, 8, 7) == (TOO_MUCH if stage == IN_BODY else NO_HEADER)
