"""Damages a capture as happens on its way: packets come later, twice or not at all, from a seed.

    python tools/damage_capture.py CLEAN.pcap DAMAGED.pcap [MORE.pcap ...] --seed 5

With several files to write, the packets are shared out as a rotating recorder does it.
"""

from __future__ import annotations

import argparse
import random
import struct
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

_HEAD = 24
_RECORD = struct.Struct("<IIII")


class Rates(NamedTuple):
    """Of a thousand packets, how many come late, twice, or never."""

    late: float = 10
    twice: float = 10
    lost: float = 2


class Packet(NamedTuple):
    """A record: seconds and microseconds, lengths, octets."""

    times: tuple[int, int]
    sizes: tuple[int, int]
    octets: bytes


def packets(path: Path) -> Iterator[Packet]:
    """The packets of a pcap file in this byte order."""
    with path.open("rb", 1 << 20) as file:
        file.read(_HEAD)
        while head := file.read(_RECORD.size):
            *times, captured, original = _RECORD.unpack(head)
            yield Packet((times[0], times[1]), (captured, original), file.read(captured))


def damaged(clean: Iterable[Packet], rates: Rates, seed: int) -> Iterator[Packet]:
    """The packets as they come; one that is late has the time at which it comes."""
    rng = random.Random(seed)
    waiting: list[tuple[int, Packet]] = []
    last = (0, 0)
    for number, packet in enumerate(clean):
        last = packet.times
        yield from (each._replace(times=last) for at, each in waiting if at <= number)
        waiting = [(at, each) for at, each in waiting if at > number]
        luck = rng.random() * 1000
        if luck < rates.lost:
            continue
        if luck < rates.lost + rates.late + rates.twice:
            waiting.append((number + rng.randint(1, 40), packet))
        if not rates.lost <= luck < rates.lost + rates.late:
            yield packet
    yield from (each._replace(times=last) for _, each in waiting)


def write(clean: Path, targets: list[Path], rates: Rates, seed: int) -> None:
    """Damage a capture.

    Args:
        clean: a pcap file.
        targets: the files to write; all but the last have about the same size.
        rates, seed: the damage.
    """
    with clean.open("rb") as file:
        head = file.read(_HEAD)
    most = clean.stat().st_size // len(targets)
    found = damaged(packets(clean), rates, seed)
    for target in targets:
        with closing(target.open("wb", 1 << 20)) as file:
            room = most - file.write(head)
            for packet in found:
                file.write(_RECORD.pack(*packet.times, *packet.sizes))
                room -= file.write(packet.octets) + _RECORD.size
                if room <= 0 and target != targets[-1]:
                    break


def main() -> None:
    """Damage a capture."""
    parser = argparse.ArgumentParser(description="Make a damaged capture of one that is not.")
    parser.add_argument("clean", type=Path)
    parser.add_argument("targets", type=Path, nargs="+")
    parser.add_argument("--seed", type=int, default=5)
    for name, value in Rates()._asdict().items():
        parser.add_argument(f"--{name}", type=float, default=value, help="of a thousand packets")
    given = parser.parse_args()
    write(given.clean, given.targets, Rates(given.late, given.twice, given.lost), given.seed)


if __name__ == "__main__":
    main()
