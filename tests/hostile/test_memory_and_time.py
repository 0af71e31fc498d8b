"""Work and memory grow with the octets that came, never with the numbers in them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from support import vectors
from support.memory import traced
from support.outcomes import drain
from support.tiers import few
from support.timing import small_heap, undisturbed, within

from amqpcodec import Limits

MULTIPLE = 48
"""Octets of memory in use for each octet fed, results included; `docs/reliability.md` says so."""
FIXED = 65536
SIZE = 60_000
BOUNDLESS = Limits(table_entries=10**9, array_items=10**9)


@pytest.fixture(autouse=True, scope="module")
def heap() -> Iterator[None]:
    with small_heap():
        yield


def long(octets: bytes) -> bytes:
    return len(octets).to_bytes(4, "big") + octets


def header(entries: bytes) -> bytes:
    """A content header with these entries for headers."""
    payload = b"\0\x3c\0\0" + bytes(8) + b"\x20\0" + long(entries)
    return b"\x02\0\x01" + long(payload) + b"\xce"


def array(items: bytes) -> bytes:
    return header(b"\1kA" + long(items))


def nested(entry: bytes) -> bytes:
    """As many tables or arrays inside one another as are allowed, over and over."""
    octets = b""
    for _ in range(100):
        octets = (entry + long(octets)) if entry == b"A" else b"\1k" + entry + long(octets)
    return octets


SHAPES: dict[str, Callable[[int], bytes]] = {
    "voids": lambda n: array(b"V" * n),
    "empty arrays": lambda n: array(b"A\0\0\0\0" * (n // 5)),
    "empty tables": lambda n: array(b"F\0\0\0\0" * (n // 5)),
    "decimals": lambda n: array(b"D\2\0\0\0\7" * (n // 6)),
    "timestamps": lambda n: array(b"T\0\0\0\0\x5f\0\0\0" * (n // 9)),
    "big integers": lambda n: array(b"l\x7f\0\0\0\0\0\0\0" * (n // 9)),
    "texts of one letter": lambda n: array(
        b"".join(b"S\0\0\0\2\xc4%c" % (128 + i % 64) for i in range(n // 7))
    ),
    "octets": lambda n: array(b"x\0\0\0\2\xff\xfe" * (n // 7)),
    "short keys": lambda n: header(
        b"".join(b"\2%c%cV" % (33 + i % 200, 33 + i // 200 % 200) for i in range(n // 4))
    ),
    "keys that are not UTF-8": lambda n: header(
        b"".join(b"\2%c%cV" % (128 + i % 64, 192 + i // 64 % 64) for i in range(n // 4))
    ),
    "keys again and again": lambda n: header(b"\1aV" * (n // 3)),
    "deep arrays": lambda n: array(nested(b"A") * (n // 500)),
    "deep tables": lambda n: header((b"\1kF" + long(nested(b"F"))) * (n // 700)),
    "one table in many": lambda n: array((b"F" + long(b"\0V")) * (n // 7)),
    "flag words": lambda n: (
        b"\x02\0\x01" + long(b"\0\x3c\0\0" + bytes(8) + b"\0\1" * (n // 2) + b"\0\0") + b"\xce"
    ),
    "heartbeats": lambda n: b"\x08\0\0\0\0\0\0\xce" * (n // 8),
    "empty bodies": lambda n: b"\x03\0\x01\0\0\0\0\xce" * (n // 8),
    "methods without arguments": lambda n: (b"\x01\0\x01" + long(b"\0\x14\0\x29") + b"\xce") * (n // 12),
    "half a frame": lambda n: b"\x03\0\x01\xff\xff\xff\xf0" + bytes(n),
    "unknown tag at the end": lambda n: array(b"V" * n + b"z"),
    "errors": lambda n: b"\x01\0\x01\0\0\0\0\xce" * (n // 8),
}  # fmt: skip


def decode(amqp: ModuleType, data: bytes, tables: str = "dict", chunk: int = 0) -> Any:
    decoder = amqp.FrameDecoder(frame_max=0, tables=tables, limits=BOUNDLESS)
    values: list[Any] = []
    chunks = [data[at : at + chunk] for at in range(0, len(data), chunk)] if chunk else [data]
    for chunk in chunks:
        found, error = drain(decoder, [chunk])
        values += found
        while error is not None and not error.fatal:
            decoder.skip_frame()
            found, error = drain(decoder, [b""])
            values += found
    return decoder, values


@pytest.mark.parametrize("tables", ["dict", "raw"])
@pytest.mark.parametrize("shape", few(SHAPES, 8, "further shapes"))
def test_memory_is_a_multiple_of_the_input(amqp: ModuleType, shape: str, tables: str) -> None:
    data = SHAPES[shape](SIZE)
    assert SIZE * 0.8 < len(data) < SIZE * 1.2
    decode(amqp, SHAPES[shape](700), tables)  # objects that are made once are not counted
    gc.collect()
    with traced() as memory:
        kept = decode(amqp, data, tables)
        _, peak = memory()
    assert kept
    assert peak < FIXED + MULTIPLE * len(data)


def test_octets_in_small_chunks_cost_no_more(amqp: ModuleType) -> None:
    data = array(b"V" * SIZE)
    with traced() as memory:
        kept = decode(amqp, data, chunk=7)
        _, peak = memory()
    assert kept[1]
    assert peak < FIXED + MULTIPLE * len(data)


def test_announced_sizes_reserve_nothing(amqp: ModuleType) -> None:
    huge = [case for case in vectors.load("bad-inputs-public") if case["id"].startswith("size-")]
    assert huge
    with traced() as memory:
        for case in huge:
            for kind in (amqp.FrameDecoder, amqp.MessageDecoder):
                drain(kind(frame_max=0), [bytes.fromhex(case["hex"])])
        _, peak = memory()
    assert peak < FIXED + MULTIPLE * max(len(case["hex"]) for case in huge)


def seconds(work: Callable[[], Any]) -> float:
    """CPU time."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def check_time(small: Callable[[], Any], large: Callable[[], Any]) -> None:
    """Eight times the octets, by the fastest of three: quadratic work would take 64 times as long."""
    with undisturbed():
        once = min(seconds(small) for _ in range(3))
        assert within(24 * once + 0.02, lambda: seconds(large), turns=3)


@pytest.mark.parametrize("shape", few(SHAPES, 8, "further shapes"))
def test_time_is_linear(amqp: ModuleType, shape: str) -> None:
    small, large = SHAPES[shape](SIZE), SHAPES[shape](8 * SIZE)
    check_time(lambda: decode(amqp, small), lambda: decode(amqp, large))


def test_a_frame_in_single_octets_takes_linear_time(amqp: ModuleType) -> None:
    small, large = (amqp.encode_body(1, bytes(size)) for size in (20_000, 160_000))
    check_time(lambda: decode(amqp, small, chunk=1), lambda: decode(amqp, large, chunk=1))
