"""What becomes of connections, seen from their events."""

from __future__ import annotations

import time
from collections.abc import Callable

from support.timing import undisturbed, within

from amqpcodec.capture import Close, Connection
from amqpcodec.stats.flows import Flows, Incidents
from amqpcodec.stats.lives import Lives, Stays


def _ended_together(count: int) -> Callable[[], float]:
    """So many connections that are open when the recording ends; then come their rows."""

    def work() -> float:
        incidents = Incidents(top=1)
        flows = Flows("made.pcap", incidents, Lives(1), of_streams=False)
        connections = [Connection(number, None, None) for number in range(count)]
        flows.see(Close(each, direction, 0, None, None) for each in connections for direction in (0, 1))
        begin = time.process_time()
        for each in connections:
            flows.end({"flow": each.number, **_ROW}, Stays())
        flows.finish()
        seconds = time.process_time() - begin
        assert incidents.counts.count("times", ("open-at-the-end",)) == count
        return seconds

    return work


_ROW = {
    "frames_sent": 1, "frames_received": 0, "messages_sent": 0, "messages_received": 0, "gaps": 0,
    "ts_first_us": None, "ts_last_us": None, "heartbeat": None, "octets_sent": 8, "octets_received": 0,
    "client": None, "connection_name": None, "client_product": None,
}  # fmt: skip


def test_connections_that_end_with_the_recording_take_linear_time() -> None:
    small, large = _ended_together(1_000), _ended_together(16_000)
    with undisturbed():
        once = min(small() for _ in range(3))
        assert within(48 * once + 0.02, large, turns=3)
