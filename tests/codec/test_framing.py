"""Where a frame ends: what `frame_at` says of whole, cut and damaged envelopes."""

from __future__ import annotations

import struct

import pytest

from amqpcodec._kernel.framing import (
    MORE,
    TOO_LARGE,
    UNKNOWN_TYPE,
    WHOLE,
    WRONG_END,
    frame_at,
    framing_error,
    type_mask,
)

TYPES = type_mask((1, 2, 3, 8))
LIMIT = 100
HEADER = b"AMQP\0\0\x09\x01"


def frame(size: int, *, frame_type: int = 1, end: int = 0xCE) -> bytes:
    return struct.pack(">BHI", frame_type, 7, size) + bytes(size) + bytes([end])


def found(octets: bytes, *, opens: bool = False, limit: int = LIMIT) -> tuple[int, int]:
    return frame_at(octets, 0, len(octets), TYPES, limit, opens)


@pytest.mark.parametrize("size", [0, 1, 99, 100])
@pytest.mark.parametrize("frame_type", [1, 2, 3, 8])
def test_a_whole_frame_is_found_and_what_follows_does_not_matter(size: int, frame_type: int) -> None:
    octets = frame(size, frame_type=frame_type)
    assert found(octets) == (WHOLE, size + 8)
    assert found(octets + b"\xff" * 9) == (WHOLE, size + 8)
    assert frame_at(b"?" + octets, 1, size + 9, TYPES, LIMIT, False) == (WHOLE, size + 8)
    assert frame_at(bytearray(octets), 0, size + 8, TYPES, LIMIT, True) == (WHOLE, size + 8)


@pytest.mark.parametrize("opens", [False, True])
def test_every_truncation_says_how_many_octets_are_known_to_be_needed(opens: bool) -> None:
    octets = frame(20)
    for size in range(7):
        assert found(octets[:size], opens=opens) == (MORE, 7)
    for size in range(7, 28):
        assert found(octets[:size], opens=opens) == (MORE, 28)
        assert frame_at(octets, 0, size, TYPES, LIMIT, opens) == (MORE, 28)


@pytest.mark.parametrize("frame_type", [0, 4, 9, 31, 32, 65, 255])
def test_a_type_that_is_not_accepted_is_unknown_as_soon_as_the_envelope_is_there(frame_type: int) -> None:
    octets = frame(3, frame_type=frame_type)
    assert found(octets[:6]) == (MORE, 7)
    assert found(octets[:7]) == (UNKNOWN_TYPE, 11)
    assert found(octets) == (UNKNOWN_TYPE, 11)


def test_a_frame_beyond_the_limit_is_too_large_as_soon_as_its_envelope_is_there() -> None:
    assert found(frame(101)[:7]) == (TOO_LARGE, 109)
    assert found(frame(0)[:3] + b"\xff" * 4) == (TOO_LARGE, 2**32 + 7)
    assert found(frame(0)[:3] + b"\xff" * 4, limit=2**32 - 1) == (MORE, 2**32 + 7)


def test_another_octet_than_ce_is_a_wrong_end() -> None:
    assert found(frame(4, end=0xCF)) == (WRONG_END, 12)
    assert found(frame(4, end=0)[:-1]) == (MORE, 12)


def test_only_where_the_stream_begins_a_protocol_header_is_taken_for_a_frame() -> None:
    for size in range(7):
        assert found(HEADER[:size], opens=True) == (MORE, 7)
    assert found(HEADER[:7], opens=True) == (MORE, 8)
    assert found(HEADER, opens=True) == (WHOLE, 8)
    assert found(HEADER + frame(0), opens=True) == (WHOLE, 8)
    assert found(HEADER)[0] == UNKNOWN_TYPE


@pytest.mark.parametrize(
    ("octets", "message", "offset"),
    [
        (frame(0, frame_type=77), "frame type 77 is not known", 1000),
        (HEADER, "frame type 65 is not known", 1000),
        (
            frame(0, frame_type=9),
            "frame type 9: the request and response frames of 0-9 are not supported",
            1000,
        ),
        (frame(101)[:7], "frame of 109 octets, frame_max 108", 1003),
        (frame(100, end=15), "frame ends with octet 0x0f, not 0xce", 1107),
    ],
)
def test_each_error_names_what_is_wrong_and_the_octet(octets: bytes, message: str, offset: int) -> None:
    status, size = found(octets)
    error = framing_error(status, size, b"??" + octets, 2, LIMIT, 1000)
    assert (error.message, error.offset, error.reply_code, error.fatal) == (message, offset, 501, True)
