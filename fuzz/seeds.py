"""The seed corpus: what the golden vectors and the captures hold, in the shape each target takes.

    python fuzz/seeds.py FOLDER

writes FOLDER/TARGET/, a file for each seed under the name of its SHA-1, and FOLDER/TARGET.dict if the target
has a dictionary. Everything comes from files of this repository.
"""

from __future__ import annotations

import gzip
import hashlib
import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import dictionaries
from support import make_capture, make_chaos, tunnels, vectors

from amqpcodec import DIALECTS, dialect
from amqpcodec.profiles import PROFILES

ROOT = Path(__file__).resolve().parent.parent
NAMES = tuple(DIALECTS)
REGRESSIONS = Path(__file__).resolve().parent / "regressions"
STRIDE = 8  # of so many frames one begins a conversation


def _octets(vector: dict[str, str]) -> bytes:
    return bytes.fromhex(vector["hex"])


def _frames(dialect: str) -> list[bytes]:
    cases = [vector for vector in vectors.vectors(dialect) if vector["kind"] != "table"]
    return [_octets(vector) for vector in cases]


def _stream() -> Iterator[bytes]:
    for position, name in enumerate(NAMES):
        for number, frame in enumerate(_frames(name)):
            yield bytes([position, number % 128, 8 + number % 5, number % 7]) + frame
    for number, case in enumerate(vectors.load("bad-inputs-public")):
        if len(case["hex"]) < 4000:
            yield bytes([4, 16 * (number % 2), 8, number % 3]) + _octets(case)


def _dialect(name: str) -> Iterator[bytes]:
    for number, frame in enumerate(_frames(name)):
        if len(frame) > 12 and frame[0] in (1, 2):
            # The method is chosen by its number; which one a seed was made of does not matter.
            yield (
                bytes([frame[0] & 1 | number % 4 << 1, number % 256]) + frame[11 if frame[0] == 1 else 9 : -1]
            )


def _tables() -> Iterator[bytes]:
    for name in NAMES:
        for vector in vectors.vectors(name, "table"):
            yield bytes([tuple(PROFILES).index(vector["profile"])]) + _octets(vector)[4:]


def _encoder() -> Iterator[bytes]:
    # Any octets are a program for the builder of values.
    yield from (frame + frame[::-1] for frame in _frames("rabbitmq-0-9-1")[:200])


def _capture() -> Iterator[bytes]:
    for path in sorted((ROOT / "examples").glob("*.pcap")):
        data = path.read_bytes()
        yield data[:1500]
        yield data[:6000]
        yield gzip.compress(data[:1500], mtime=0)
    yield from (_octets(vector) for vector in vectors.vectors("rabbitmq-0-9-1", "content", "protocol-header"))
    pcapng = (
        "0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000010000001400000001000000ffff000014000000"
    )
    yield bytes.fromhex(pcapng)
    yield from (make_chaos.capture(seed, 12) for seed in range(40))


def _packets() -> Iterator[bytes]:
    sent = make_capture.conversations(3, count=1, bursts=4).packets[:12]
    plain = [packet.octets for packet in sent]
    yield b"\0" + _each(plain)
    yield b"\4" + _each([piece for each in plain for piece in tunnels.fragments(each[14:], 16)])
    rng = random.Random(5)
    for layer in tunnels.LAYERS.values():
        yield b"\0" + _each([packet.octets for packet in tunnels.packets(sent[:3], [layer])])
    for _ in range(30):
        yield b"\0" + _each([packet.octets for packet in tunnels.packets(sent[:2], tunnels.nesting(rng))])


def _each(packets: list[bytes]) -> bytes:
    return b"".join(len(each).to_bytes(2, "big") + each for each in packets)


def _columns() -> Iterator[bytes]:
    for position, name in enumerate(NAMES):
        frames = _frames(name)
        for number, frame in enumerate(frames):
            yield bytes([position, number % 128, 7 * (number % 5)]) + frame
        contents = b"".join(_octets(vector) for vector in vectors.vectors(name, "content"))[:20000]
        for table in range(5):
            yield bytes([position, table, 0]) + contents


def _values() -> Iterator[bytes]:
    for position, name in enumerate(NAMES):
        frames = [frame for frame in _frames(name) if len(frame) < 254]
        contents = [_octets(vector) for vector in vectors.vectors(name, "content")]
        numbers = random.Random(position)
        for number in range(6):
            # Dialect, table, explode, all columns, direction, mode.
            options = [position, number % 3, number // 3, position % 2, number % 2, numbers.randrange(2)]
            # Credentials, largest frame, limits, kind of array, where it begins.
            rare = [numbers.random() < 0.2 for _ in range(5)]
            cells = numbers.choices((*frames, b"", frames[0] * 2), k=4) + numbers.choices(contents, k=3)
            sized = (bytes([254]) + len(cell).to_bytes(2, "big") + cell for cell in cells if len(cell) < 1000)
            yield bytes([*options, *rare]) + b"\xff".join(sized)


def _batches() -> Iterator[bytes]:
    # Any octets are a program for the builder of tables.
    numbers = random.Random(6)
    for number in range(40):
        header = bytes([number % 5, number // 5 % 4, numbers.choice((0, 0, 2, 4)), number % 2])
        yield header + bytes([4, number % 3, number % 2, 5]) + numbers.randbytes(300)


def _session() -> Iterator[bytes]:
    numbers = random.Random(7)
    captures = [make_chaos.capture(seed, 12) for seed in range(9)]
    captures += [path.read_bytes()[:2500] for path in sorted((ROOT / "examples").glob("*.pcap"))]
    for number, octets in enumerate(captures):
        program = numbers.randbytes(numbers.choice((0, 12, 24)))
        options = bytes([number % 6, number % 3, number % 2, *numbers.randbytes(2), len(program)])
        yield options + program + octets


def _connection() -> Iterator[bytes]:
    numbers = random.Random(8)
    for number in range(60):
        program = bytearray(numbers.randbytes(4 * numbers.randrange(5, 80)))
        for at in range(2, len(program), 4):
            program[at] = numbers.choice((1, 1, 1, program[at]))  # most of it on one channel
        yield bytes([number % 5, number // 5 % 4, 0]) + program
    for position, name in enumerate(NAMES):
        header = dialect(name).DIALECT.protocol_header
        # Some of the frames: a conversation with each takes a minute before fuzzing begins.
        for number, frame in enumerate(_frames(name)[position::STRIDE]):
            # Into either side, from the start or once it is open.
            yield bytes([position, 4 | number % 4, number % 5]) + (header if number % 4 == 0 else b"") + frame


def _broker() -> Iterator[bytes]:
    # Any octets are a program of methods.
    numbers = random.Random(9)
    yield from (bytes(1) + numbers.randbytes(numbers.randrange(50, 1000)) for _ in range(40))
    for number, frame in enumerate(_frames("rabbitmq-0-9-1")[::STRIDE]):
        yield bytes([1 + number % 3]) + frame


MAKERS: dict[str, Callable[[], Iterator[bytes]]] = {
    "stream": _stream,
    **{DIALECTS[name]: partial(_dialect, name) for name in NAMES},
    "tables": _tables,
    "encoder": _encoder,
    "capture": _capture,
    "packets": _packets,
    "columns": _columns,
    "values": _values,
    "batches": _batches,
    "session": _session,
    "connection": _connection,
    "broker": _broker,
}


def seeds(target: str) -> list[bytes]:
    """The seeds of a target, findings of earlier runs among them."""
    found = sorted((REGRESSIONS / target).glob("*"))
    return list(dict.fromkeys([*(path.read_bytes() for path in found), *MAKERS[target]()]))


def write(folder: Path, target: str) -> None:
    """Write the seeds of a target, and its dictionary if it has one."""
    (folder / target).mkdir(parents=True, exist_ok=True)
    for octets in seeds(target):
        (folder / target / hashlib.sha1(octets).hexdigest()).write_bytes(octets)
    if text := dictionaries.text(target):
        (folder / f"{target}.dict").write_text(text, encoding="ascii")


if __name__ == "__main__":
    for each in MAKERS:
        write(Path(sys.argv[1]), each)
