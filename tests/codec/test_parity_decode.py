"""Both builds return the same values, errors and offsets for damaged input."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from support import vectors
from support.campaign import in_full, share
from support.failures import Failures
from support.implementation import Implementation
from support.outcomes import FATAL, decoding, octet_by_octet

from amqpcodec import DecodeError

SEED = 20091


def frames_of(dialect: str) -> list[bytes]:
    """Every frame among the golden vectors, each once."""
    cases = vectors.vectors(dialect, "method", "header", "tolerate", "body", "raw-frame", "invalid")
    return list(dict.fromkeys(bytes.fromhex(vector["hex"]) for vector in cases))


def lengths(most: int) -> Iterator[int]:
    """Return where to cut: each of the first places, some of those after them, and the last eight."""
    dense, apart = in_full(50, 30), in_full(11, 23)
    return (size for size in range(most) if size < dense or size % apart == 0 or size >= most - 8)


def resized(frame: bytes, size: int) -> bytes:
    """The frame with its payload cut to `size` octets, its envelope valid."""
    return frame[:3] + size.to_bytes(4, "big") + frame[7 : 7 + size] + b"\xce"


def flipped(frame: bytes, numbers: random.Random) -> bytes:
    """The frame with one to three bits of its payload turned over, its envelope valid."""
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
    twins = Twins(both, dialect, tables=tables, frame_max=0)
    failures = Failures()
    for frame in frames_of(dialect):
        with failures.case(frame[:40].hex()):
            for size in lengths(len(frame) - 8):
                twins.agree(resized(frame, size))
    failures.check(at_least=150)


def test_streams_cut_short(both: tuple[Implementation, Implementation], dialect: str) -> None:
    twins = Twins(both, dialect)
    failures = Failures()
    for frame in frames_of(dialect):
        with failures.case(frame[:40].hex()):
            for size in lengths(len(frame)):
                twins.agree(frame[:size])
    failures.check(at_least=150)


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_flipped_bits(both: tuple[Implementation, Implementation], dialect: str, strict: bool) -> None:
    twins, numbers = Twins(both, dialect, strict=strict), random.Random(SEED)
    failures = Failures()
    for frame in frames_of(dialect):
        if len(frame) > 8:
            with failures.case(frame[:40].hex()):
                for _ in range(share(5)):
                    twins.agree(flipped(frame, numbers))
    failures.check(at_least=150)


def test_flipped_bits_of_the_envelope(both: tuple[Implementation, Implementation], dialect: str) -> None:
    twins = Twins(both, dialect)
    frames = frames_of(dialect)[::10]
    assert len(frames) > 10
    for frame in frames:
        for position in (*range(min(7, len(frame))), -1):
            for bit in range(8):
                octets = bytearray(frame)
                octets[position] ^= 1 << bit
                twins.agree(bytes(octets))


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_sound_frames_in_strict_and_lenient_mode(
    both: tuple[Implementation, Implementation], dialect: str, strict: bool
) -> None:
    twins = Twins(both, dialect, strict=strict)
    outcomes = [twins.agree(frame) for frame in frames_of(dialect)]
    assert sum(error is None for _, error, _, _ in outcomes) > 100


SIZES = dict.fromkeys("tbBk", 1) | dict.fromkeys("Usu", 2) | dict.fromkeys("Iif", 4)
SIZES |= dict.fromkeys("LldT", 8) | {"D": 5, "V": 0, "z": 1, "F": 0, "A": 0}
LENGTHS = (b"\0\0\0\0", b"\0\0\0\x03", b"\0\0\0\x07")


def random_tables(numbers: random.Random) -> Iterator[bytes]:
    """Entries of tables: known tags, lengths that often fit, and now and then an octet too few or many."""
    for _ in range(share(300)):
        octets = bytearray()
        for _ in range(numbers.randint(1, 4)):
            tag = numbers.choice("tbBUsuIilLfdDSxATFVcCkz")
            octets += b"\x01" + numbers.choice(b"abcdefgh").to_bytes(1, "big") + tag.encode()
            length = numbers.choice(LENGTHS) if tag in "SxAFcC" else b""
            octets += length + numbers.randbytes(SIZES.get(tag, int.from_bytes(length, "big")))
        if numbers.random() < 0.3:
            octets = octets[:-1] if numbers.random() < 0.5 else octets + b"\0"
        yield bytes(octets)


@pytest.mark.parametrize("profile", ["0-8", "0-9", "wg-0-9-1", "rabbitmq", "qpid"])
@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_random_tables(both: tuple[Implementation, Implementation], profile: str, strict: bool) -> None:
    numbers = random.Random(SEED)
    twins = Twins(both, "rabbitmq-0-9-1", profile=profile, strict=strict)
    valid = 0
    for octets in random_tables(numbers):
        payload = b"\0\x32\0\x0a\0\0\x01q\0" + len(octets).to_bytes(4, "big") + octets
        frame = b"\x01\0\x01" + len(payload).to_bytes(4, "big") + payload + b"\xce"
        valid += twins.agree(frame)[1] is None
    assert 10 < valid < share(300) - 5


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
    for _ in range(share(120)):
        twins.agree(numbers.randbytes(numbers.randint(0, 40)))
        payload = numbers.randbytes(numbers.randint(0, 30))
        envelope = bytes([numbers.choice((1, 2, 3, 8, 4, 7)), 0, numbers.randint(0, 1)])
        twins.agree(envelope + len(payload).to_bytes(4, "big") + payload + b"\xce")


def shuffled_streams(dialect: str, numbers: random.Random) -> Iterator[bytes]:
    """Streams of valid frames in any order, on two channels."""
    frames = [frame for frame in frames_of(dialect) if 8 <= len(frame) < 60 and frame[0] in (1, 2, 3)]
    content = [
        frame for frame in frames if frame[0] != 1 or (frame[7:9] == b"\0\x3c" and frame[10] in (40, 60, 71))
    ]
    for _ in range(share(60)):
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
            if outcomes[-1][1] is None or outcomes[-1][1][FATAL]:
                break
            decoder.skip_frame()
        seen.append(outcomes)
    assert seen[0] == seen[1]
    assert len(seen[0]) > 5
