"""Memory of decoders that have read what they were given and wait: a server has one for each connection."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import ModuleType

import pytest
from support.memory import traced

DECODERS = 2
BYTES = 20_000  # of each: 10,000 of them have 200 MB
TABLES = 12  # that differ, more than a decoder keeps


def array(items: bytes) -> bytes:
    return b"A" + len(items).to_bytes(4, "big") + items


# Tables of at most 512 octets, those that a decoder keeps if they come again, by the first key.
SHAPES: dict[str, Callable[[bytes], bytes]] = {
    "dicts": lambda key: key + array(b"F\0\0\0\3\1aV" * 62),
    "empty dicts": lambda key: key + array(b"F\0\0\0\0" * 99),
    "lists": lambda key: key + array(b"A\0\0\0\1V" * 83),
    "empty lists": lambda key: key + array(b"A\0\0\0\0" * 99),
    "numbers": lambda key: key + array(b"u\x70\0" * 160),
    "entries": lambda key: key + b"V" + b"".join(bytes([1, at, 86]) for at in range(1, 128)),
    "texts": lambda key: key + array(b"S\0\0\0\2\xc3\xa9" * 70),
    "times": lambda key: key + array(b"".join(b"T\0\0\0\0\0\0\1%c" % at for at in range(55))),
    "decimals": lambda key: key + array(b"D\1\0\0\0\1" * 80),
    "levels": lambda key: key + nested(60),
    "long keys": lambda key: b"".join(b"\x31%48d%b" % (at, key[1:2]) + b"V" for at in range(9)),
}


def nested(levels: int) -> bytes:
    inner = b"V"
    for _ in range(levels):
        inner = b"F" + (len(inner) + 2).to_bytes(4, "big") + b"\1a" + inner
    return inner


def header(entries: bytes) -> bytes:
    """A content header with such headers."""
    payload = b"\0\x3c\0\0" + bytes(8) + b"\x20\0" + len(entries).to_bytes(4, "big") + entries
    return b"\2\0\1" + len(payload).to_bytes(4, "big") + payload + b"\xce"


@pytest.mark.parametrize("shape", SHAPES)
def test_a_decoder_keeps_little_of_tables_that_repeat(amqp: ModuleType, shape: str) -> None:
    entries = [SHAPES[shape](bytes([1, 0x41 + at])) for at in range(TABLES)]
    assert max(map(len, entries)) <= 512
    stream = b"".join(header(each) * 3 for each in entries) * 2
    gc.collect()
    with traced() as memory:
        idle = [amqp.FrameDecoder() for _ in range(DECODERS)]
        for decoder in idle:
            assert sum(1 for _ in decoder.feed(stream)) == TABLES * 6
        gc.collect()
        used, _ = memory()
    assert used < DECODERS * BYTES


def test_a_decoder_keeps_little_of_texts_and_tables_that_repeat(amqp: ModuleType) -> None:
    names = [b"\x30%048d" % at for at in range(2000)]
    texts = b"".join(
        header(b"".join(name + b"V" for name in names[at : at + 8])) * 3 for at in range(0, 2000, 8)
    )
    tables = b"".join(header(SHAPES["dicts"](bytes([1, 0x41 + at]))) * 3 for at in range(TABLES))
    with traced() as memory:
        idle = [amqp.FrameDecoder() for _ in range(10)]
        for decoder in idle:
            for _ in decoder.feed(texts + tables):
                pass
        gc.collect()
        used, _ = memory()
    assert used < 10 * BYTES


def test_texts_that_repeat_are_kept_in_place_of_those_that_did(amqp: ModuleType) -> None:
    decoder = amqp.FrameDecoder()

    def types(names: list[str]) -> list[str]:
        head = b"\2\0\1\0\0\0\x1b\0\x3c\0\0" + bytes(8) + b"\x80\0\x0c"
        stream = b"".join(head + name.encode() + b"\xce" for name in names)
        return [frame.payload.properties.content_type for frame in decoder.feed(stream)]

    for first in range(0, 1200, 6):
        names = [f"{at:012}" for at in range(first, first + 6)]
        made = types(names * 4)
        assert made == names * 4
        if amqp.__name__.endswith("_c"):  # the pure build keeps none
            assert sum(one is other for one, other in zip(made[-12:-6], made[-6:], strict=True)) > 3
