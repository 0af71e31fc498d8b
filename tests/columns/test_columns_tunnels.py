"""Tunnels, fragments and exports in columns: the same rows as outside, however reading is cut in parts."""

from __future__ import annotations

import io
import random
import struct
from typing import Any

import pytest
from support import make_capture as make
from support import tunnels
from support.columns import BUILDS

from amqpcodec import arrow

TRUTH = make.conversations(9, count=2, bursts=5)
TABLES = ("frames", "messages", "connections", "deliveries", "packets")


def fragmented(packets: list[make.Recorded]) -> list[make.Recorded]:
    rng, found = random.Random(4), []
    for number, each in enumerate(packets):
        pieces = tunnels.fragments(each.octets[14:], 256, number)
        rng.shuffle(pieces)
        found += [make.Recorded(each.time_ns, make.ethernet(piece)) for piece in pieces]
    return found


def exported(packets: list[make.Recorded]) -> list[make.Recorded]:
    """Payloads as Wireshark exports those that it has decrypted."""
    found = []
    for each in packets:
        if each.end > each.begin:
            tags = struct.pack("!HH4sHH4sHHI", 20, 4, each.octets[26:30], 21, 4, each.octets[30:34], 24, 4, 2)
            ports = struct.unpack_from("!HH", each.octets, 34)
            tags += struct.pack("!HHIHHIHH", 25, 4, ports[0], 26, 4, ports[1], 0, 0)
            found.append(make.Recorded(each.time_ns, tags + each.octets[54:]))
    return found


def by_direction(packets: list[make.Recorded]) -> list[make.Recorded]:
    """Packets whose labels differ by direction."""
    return [tunnels.packet(each, [tunnels.mpls], 1 + (each.octets[34] == 0x16)) for each in packets]


CAPTURES = {
    "vxlan": make.pcap(tunnels.packets(TRUTH.packets, [tunnels.vxlan])),
    "labels by direction": make.pcap(by_direction(TRUTH.packets)),
    "fragments of geneve": make.pcap(fragmented(tunnels.packets(TRUTH.packets, [tunnels.geneve]))),
    "exports": make.pcap(exported(TRUTH.packets), linktype=252),
}
# What differs since there are other packets, or no more than payloads.
BY_PACKETS = {"packet", "packets", "seq", "ack", "flags", "offset", "length", "ts_first", "ts_last"}


def rows_of(batches: Any) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def without(rows: list[dict[str, Any]], columns: set[str]) -> list[dict[str, Any]]:
    """Rows by connection, whose ends exports do not have, without some columns."""
    ordered = sorted(rows, key=lambda row: row["flow"])
    return [{name: cell for name, cell in row.items() if name not in columns} for row in ordered]


@pytest.mark.parametrize("impl", BUILDS)
@pytest.mark.parametrize("table", TABLES)
def test_rows_are_those_of_packets_outside_of_tunnels(impl: str, table: str) -> None:
    plain = rows_of(arrow.read_capture(io.BytesIO(make.pcap(TRUTH.packets)), table, _impl=impl))
    for name in ("vxlan", "labels by direction"):
        assert rows_of(arrow.read_capture(io.BytesIO(CAPTURES[name]), table, _impl=impl)) == plain
    if table != "packets":
        for name in ("fragments of geneve", "exports"):
            found = rows_of(arrow.read_capture(io.BytesIO(CAPTURES[name]), table, _impl=impl))
            assert without(found, BY_PACKETS) == without(plain, BY_PACKETS)


@pytest.mark.parametrize("impl", BUILDS)
@pytest.mark.parametrize("name", CAPTURES)
def test_where_reading_is_cut_makes_no_difference(impl: str, name: str) -> None:
    octets, rng = CAPTURES[name], random.Random(7)
    whole = rows_of(arrow.read_capture(io.BytesIO(octets), "messages", _impl=impl))
    session, found = arrow.CaptureSession("messages", _impl=impl), []
    for end in sorted(rng.sample(range(24, len(octets)), 12)):
        found += rows_of(session.read(io.BytesIO(octets), end=end))
        session = arrow.CaptureSession("messages", state=session.suspend(), _impl=impl)
    found += rows_of(session.read(io.BytesIO(octets)))
    found += rows_of(session.finish())
    assert found == whole
