"""Captures as they lie in folders: cut into files as a recorder rotates them."""

from __future__ import annotations

import itertools
import random
import struct
from collections.abc import Sequence
from pathlib import Path

from synthetic_capture import record

_HEAD = 24


def records(octets: bytes) -> list[bytes]:
    """The records of a pcap file of this machine's byte order."""
    found = []
    at = _HEAD
    while at < len(octets):
        end = at + 16 + struct.unpack_from("<I", octets, at + 8)[0]
        found.append(octets[at:end])
        at = end
    return found


def rotated(octets: bytes, cuts: Sequence[int]) -> list[bytes]:
    """A pcap file as several, cut behind these numbers of records."""
    found = records(octets)
    bounds = [0, *cuts, len(found)]
    return [octets[:_HEAD] + b"".join(found[begin:end]) for begin, end in itertools.pairwise(bounds)]


def write_rotated(folder: Path, octets: bytes, seed: int, files: int) -> list[Path]:
    """Write a pcap file as several, cut anywhere, named as a recorder does; returns their names in order."""
    rng = random.Random(seed)
    cuts = sorted(rng.sample(range(1, len(records(octets))), files - 1))
    folder.mkdir(exist_ok=True)
    paths = [folder / f"trace_{number:05d}.pcap" for number in range(1, files + 1)]
    for path, part in zip(paths, rotated(octets, cuts), strict=True):
        path.write_bytes(part)
    return paths


def busy(path: Path, octets: int = 400_000, connections: int = 6, seed: int = 3) -> bytes:
    """The bytes of a seeded capture of connections side by side."""
    record(path, octets, connections, seed, bursts=12)
    return path.read_bytes()
