"""Rows of connections count what was wrong with each: errors, gaps and the octets missing in them."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace

from support import make_capture as make

from amqpcodec import arrow
from amqpcodec.capture import Fault, read_frames

COUNTED = ("errors", "gaps", "octets_missing")


def damaged() -> bytes:
    """Three connections, one of which lacks packets and has octets that are no frame."""
    truth = make.conversations(7, count=3, bursts=8)
    packets = list(truth.packets)
    del packets[len(packets) // 2 : len(packets) // 2 + 2]
    disturbed = [
        replace(packet, octets=packet.octets[:-1] + b"\x99") if number % 11 == 5 else packet
        for number, packet in enumerate(packets)
    ]
    return make.pcap(disturbed)


def test_faults_are_counted_by_what_they_are(build: str) -> None:
    octets = damaged()
    expected: Counter[tuple[int, str]] = Counter()
    for item in read_frames(io.BytesIO(octets)):
        if isinstance(item, Fault) and item.connection is not None:
            number = item.connection.number
            expected[number, "errors"] += item.kind == "error"
            expected[number, "gaps"] += item.kind == "gap"
            expected[number, "octets_missing"] += item.length if item.kind == "gap" else 0
    reader = arrow.read_capture(io.BytesIO(octets), "connections", _impl=build)
    rows = [row for batch in reader for row in batch.to_pylist()]
    found = {(row["flow"], name): row[name] for row in rows for name in COUNTED}
    assert found == {place: expected[place] for place in found}
    totals = [sum(expected[flow, name] for flow in {flow for flow, _ in found}) for name in COUNTED]
    assert len(set(totals)) == len(COUNTED), totals  # so that none can stand for another
    assert 0 not in totals
