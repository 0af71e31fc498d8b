"""Print the octets of memory that one more object of a kind takes, or a process has, in a fresh one.

Usage: footprint.py {nothing|import|decoder|channel|stats}
"""

from __future__ import annotations

import gc
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

MAPPED = Path("/proc/self/smaps_rollup")  # exact; "status" may be off by many pages
FEW = 200  # objects that come first: what they share is made with them
CHANNELS = 1000  # of one connection


def resident() -> int:
    """Return the octets of memory that the process has for itself: files are mapped as the kernel likes."""
    gc.collect()
    line = next(
        line for line in MAPPED.read_text(encoding="utf-8").splitlines() if line.startswith("Anonymous:")
    )
    return int(line.split()[1]) * 1024


def each(make: Callable[[], Any], count: int) -> int:
    """Return the octets that each of `count` objects takes."""
    kept = [make() for _ in range(FEW)]
    before = resident()
    kept += [make() for _ in range(count)]
    return round((resident() - before) / count)


def importing() -> int:
    """Return the octets of a process that has imported a dialect; what that takes, `resident` has without."""
    import amqpcodec.rabbitmq

    assert amqpcodec.IMPL == "c"
    return resident()


def decoders() -> int:
    """Return the octets of a decoder that has read two deliveries and waits for more."""
    import corpus

    from amqpcodec import rabbitmq as amqp

    stream = corpus.delivery_stream(corpus.varied(256, 2))

    def make() -> Any:
        decoder = amqp.FrameDecoder(expect_header=False)
        assert len(list(decoder.feed(stream))) == 6
        return decoder

    return each(make, 20_000)


def channels() -> int:
    """Return the octets of an open channel of a client's connection."""
    from peers.ours import Ours

    ours = Ours("amqpcodec", "c")

    def make() -> Any:
        client = ours.client(())
        for number in range(2, CHANNELS + 2):
            client.send(number, ours.amqp.Channel.Open())
            list(client.receive_data(ours.amqp.encode_method(number, ours.amqp.Channel.OpenOk())))
        client.data_to_send()
        return client

    kept = [make()]
    before = resident()
    kept += [make() for _ in range(20)]
    return round((resident() - before) / (20 * CHANNELS))


def captured() -> int:
    """Return the octets that `stats` takes for a connection that is open, at its peak."""
    from memory import peak

    from amqpcodec.stats import Collector

    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        for count in (1000, 5000):  # the file of fewer first: a peak never falls
            path = Path(folder, f"{count}.pcap")
            record_open(path, count)
            collector = Collector()
            collector.add(path, path.name)
            assert collector.summary().totals["connections"] == count
            peaks.append(peak())
    return (peaks[1] - peaks[0]) // 4000


def record_open(path: Path, count: int) -> None:
    """Write a capture of connections that have exchanged a few messages, and stay open."""
    sys.path.append(str(Path(__file__).parent.parent / "tools"))
    from synthetic_capture import START_US, Connection, Recorder, conversation

    with path.open("wb") as file:
        recorder = Recorder(file)
        for number in range(count):
            own = random.Random(number)
            connection = Connection(number, own)
            for said in list(conversation(own, START_US + number, number, 1))[:-2]:  # without the close
                recorder.said(connection, said)


KINDS = {
    "nothing": resident,
    "import": importing,
    "decoder": decoders,
    "channel": channels,
    "stats": captured,
}

if __name__ == "__main__":
    print(KINDS[sys.argv[1]]())
