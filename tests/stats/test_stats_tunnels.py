"""Connections with equal ends in different tunnels have rows of their own, which name the tunnel."""

from __future__ import annotations

from pathlib import Path

from support import make_capture as make
from support import tunnels
from support.troubled import troubled

from amqpcodec import stats


def _summary(packets: list[make.Recorded], folder: Path) -> stats.Summary:
    path = folder / "made.pcap"
    path.write_bytes(make.pcap(packets, nanos=True))
    collector = stats.Collector(top=100)
    collector.add(path, path.name)
    return collector.summary()


def _clients(summary: stats.Summary) -> dict[str, set[str]]:
    return {
        "connections": {row["client"] for row in summary.connections.rows},
        "publishers": {party.keys["client"] for party in summary.by_publisher},
        "consumers": {party.keys["client"] for party in summary.by_consumer},
        "lives": {life.client for life in summary.lives},
        "incidents": {incident.client for incident in summary.first_incidents},
    }


def test_equal_ends_in_two_tunnels_do_not_share_a_row(tmp_path: Path) -> None:
    sent = troubled().packets
    plain = _summary(sent, tmp_path)
    both = [tunnels.packet(each, [tunnels.vxlan], number) for each in sent for number in (7, 8)]
    found = _summary(both, tmp_path)
    for table, ends in _clients(plain).items():
        assert _clients(found)[table] == {f"{end} in vxlan {number}" for end in ends for number in (7, 8)}
    for one, two in ((plain.by_publisher, found.by_publisher), (plain.by_consumer, found.by_consumer)):
        assert sorted(each.messages for each in two) == sorted(2 * [each.messages for each in one])
