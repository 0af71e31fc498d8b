"""Damaged input gives the same values, errors and positions in both builds."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from support import vectors
from support.failures import Failures
from support.implementation import Implementation
from support.outcomes import decoding, octet_by_octet

from amqpcodec import DecodeError

SEED = 20091
# Cut at every octet up to here, and at a few places of what is longer.
EVERY = 160
SOME = 12

Pair = tuple[Any, Any]


def frames_of(dialect: str) -> list[bytes]:
    """Every frame among the golden vectors, each once."""
    cases = vectors.vectors(dialect, "method", "header", "tolerate", "body", "raw-frame", "invalid")
    return list(dict.fromkeys(bytes.fromhex(vector["hex"]) for vector in cases))


def cuts_of(frame: bytes, numbers: random.Random) -> list[int]:
    """Where to cut a frame, its envelope not counted."""
    size = len(frame)
    far = sorted(numbers.sample(range(EVERY, size), min(SOME, size - EVERY))) if size > EVERY else []
    return [*range(min(size, EVERY)), *far]


def resized(frame: bytes, size: int) -> bytes:
    """The frame with its payload cut to `size` octets, its envelope sound."""
    return frame[:3] + size.to_bytes(4, "big") + frame[7 : 7 + size] + b"\xce"


def flipped(frame: bytes, numbers: random.Random) -> bytes:
    """The frame with one to three bits of its payload turned over, its envelope sound."""
    octets = bytearray(frame)
    for _ in range(numbers.randint(1, 3)):
        octets[numbers.randrange(7, len(frame) - 1)] ^= 1 << numbers.randrange(8)
    return bytes(octets)


class Twins:
    """One decoder of each build, with the same options, always fed the same."""

    def __init__(self, both: tuple[Implementation, Implementation], dialect: str, **options: Any) -> None:
        kind = options.pop("kind", "FrameDecoder")
        self.decoders = [getattr(impl.dialect(dialect), kind)(**options) for impl in both]

    def agree(self, *chunks: bytes) -> Any:
        """Feed both afresh; what they did, which must be the same."""
        outcomes = []
        for decoder in self.decoders:
            decoder.reset()
            outcomes.append(decoding(decoder, chunks))
        assert outcomes[0] == outcomes[1], chunks
        return outcomes[0]


@pytest.mark.parametrize("tables", ["dict", "raw"])
def test_payloads_cut_short(both: tuple[Implementation, Implementation], dialect: str, tables: str) -> None:
    twins, numbers = Twins(both, dialect, tables=tables, frame_max=0), random.Random(SEED)
    failures = Failures()
    for frame in frames_of(dialect):
        payload = len(frame) - 8
        with failures.case(frame[:40].hex()):
            for size in cuts_of(frame[8:], numbers):
                twins.agree(resized(frame, min(size, payload)))
    failures.check(at_least=150)


def test_streams_cut_short(both: tuple[Implementation, Implementation], dialect: str) -> None:
    twins, numbers = Twins(both, dialect), random.Random(SEED)
    failures = Failures()
    for frame in frames_of(dialect):
        with failures.case(frame[:40].hex()):
            for size in cuts_of(frame, numbers):
                twins.agree(frame[:size])
    failures.check(at_least=150)


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_flipped_bits(both: tuple[Implementation, Implementation], dialect: str, strict: bool) -> None:
    twins, numbers = Twins(both, dialect, strict=strict), random.Random(SEED)
    failures = Failures()
    for frame in frames_of(dialect):
        if len(frame) > 8:
            with failures.case(frame[:40].hex()):
                for _ in range(20):
                    twins.agree(flipped(frame, numbers))
    failures.check(at_least=150)


def test_flipped_bits_of_the_envelope(both: tuple[Implementation, Implementation], dialect: str) -> None:
    twins = Twins(both, dialect)
    frames = frames_of(dialect)[::10]
    assert len(frames) > 10
    for frame in frames:
        for place in (*range(min(7, len(frame))), -1):
            for bit in range(8):
                octets = bytearray(frame)
                octets[place] ^= 1 << bit
                twins.agree(bytes(octets))


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_sound_frames_in_strict_and_lenient_mode(
    both: tuple[Implementation, Implementation], dialect: str, strict: bool
) -> None:
    twins = Twins(both, dialect, strict=strict)
    outcomes = [twins.agree(frame) for frame in frames_of(dialect)]
    assert sum(error is None for _, error, _, _ in outcomes) > 100


def random_tables(numbers: random.Random) -> Iterator[bytes]:
    """Octets that often are entries of a table for a while: known tags, short lengths."""
    for _ in range(600):
        octets = bytearray()
        for _ in range(numbers.randint(1, 5)):
            octets += b"\x01k" + numbers.choice(b"tbBUsuIilLfdDSxATFVcCkz").to_bytes(1, "big")
            octets += numbers.choice([b"", b"\0\0\0\x03", b"\0\0\0\x07", numbers.randbytes(2)])
            octets += numbers.randbytes(numbers.randint(0, 9))
        yield bytes(octets)


@pytest.mark.parametrize("profile", ["0-8", "0-9", "wg-0-9-1", "rabbitmq", "qpid"])
@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_random_tables(both: tuple[Implementation, Implementation], profile: str, strict: bool) -> None:
    numbers = random.Random(SEED)
    twins = Twins(both, "rabbitmq-0-9-1", profile=profile, strict=strict)
    sound = 0
    for octets in random_tables(numbers):
        payload = b"\0\x32\0\x0a\0\0\x01q\0" + len(octets).to_bytes(4, "big") + octets
        frame = b"\x01\0\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce"
        sound += twins.agree(frame)[1] is None
    assert sound > 5


def table_outcome(impl: Implementation, function: str, *arguments: Any, **options: Any) -> Any:
    try:
        return impl.tables.__dict__[function](*arguments, **options)
    except DecodeError as error:
        return str(error), error.offset, error.reply_code, error.field, error.method


def test_random_tables_on_their_own(both: tuple[Implementation, Implementation]) -> None:
    for octets in random_tables(random.Random(SEED)):
        sized = len(octets).to_bytes(4, "big") + octets
        for cut in (sized, sized[:-1], sized + b"\0", sized[:3]):
            found = [repr(table_outcome(impl, "decode_table", cut)) for impl in both]
            assert found[0] == found[1]
        found = [repr(table_outcome(impl, "decode_pairs", octets, "qpid")) for impl in both]
        assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["FrameDecoder", "MessageDecoder"])
def test_random_octets(both: tuple[Implementation, Implementation], dialect: str, kind: str) -> None:
    numbers = random.Random(SEED)
    twins = Twins(both, dialect, kind=kind)
    for _ in range(300):
        twins.agree(numbers.randbytes(numbers.randint(0, 40)))
        payload = numbers.randbytes(numbers.randint(0, 30))
        envelope = bytes([numbers.choice((1, 2, 3, 8, 4, 7)), 0, numbers.randint(0, 1)])
        twins.agree(envelope + len(payload).to_bytes(4, "big") + payload + b"\xce")


def shuffled_streams(dialect: str, numbers: random.Random) -> Iterator[bytes]:
    """Streams of sound frames in any order, on two channels."""
    frames = [frame for frame in frames_of(dialect) if 8 <= len(frame) < 60 and frame[0] in (1, 2, 3)]
    content = [
        frame for frame in frames if frame[0] != 1 or frame[7:9] == b"\0\x3c" and frame[10] in (40, 60, 71)
    ]
    for _ in range(150):
        picked = numbers.choices(content, k=numbers.randint(2, 8))
        yield b"".join(frame[:1] + numbers.randint(1, 2).to_bytes(2, "big") + frame[3:] for frame in picked)


@pytest.mark.parametrize("aborted", ["error", "keep"])
def test_frames_in_any_order(both: tuple[Implementation, Implementation], dialect: str, aborted: str) -> None:
    twins = Twins(both, dialect, kind="MessageDecoder", aborted=aborted)
    numbers = random.Random(SEED)
    for stream in shuffled_streams(dialect, numbers):
        whole = twins.agree(stream)
        assert twins.agree(*octet_by_octet(stream))[:2] == whole[:2]


def test_skipping_bad_frames(both: tuple[Implementation, Implementation], dialect: str) -> None:
    numbers = random.Random(SEED)
    frames = [frame for frame in frames_of(dialect) if len(frame) > 12]
    stream = b"".join(flipped(frame, numbers) for frame in frames)
    seen = []
    for impl in both:
        decoder = impl.dialect(dialect).FrameDecoder().feed(stream)
        outcomes: list[Any] = []
        while True:
            outcomes.append(decoding(decoder, [b""]))
            if outcomes[-1][1] is None or outcomes[-1][1][-1]:
                break
            decoder.skip_frame()
        seen.append(outcomes)
    assert seen[0] == seen[1]
    assert len(seen[0]) > 5
