"""Columns beside rabbitmq-c and beside objects, captures beside tshark; what was made is checked first.

    python benchmarks/columnar.py [--mb 1000] [--memory-mb 4000]

Times are CPU time, but for threads and processes, where the clock on the wall counts. What is compared is
timed by turns, since the speed of a machine drifts: a ratio is the median of the ratios of the turns.
rabbitmq-c fills C structs whose strings point into its input buffer; the columns hold copies.

Threads and processes have a decoder each. They begin together and decode their stream many times: a thread
that begins may wait for its core longer than one stream takes.

Captures are made from a seed. Their times are those of the clock on the wall, each of a process of its own
that reads the file once before. tshark runs between two halves of the conversions, whose median counts. Each
conversion is followed by pyarrow's writer alone, which is the limit: it gets the same batches in the same
groups, and nothing else runs while it writes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time_ns
from typing import Any

import anchor
import corpus
from captures import FOLDER, capture, tshark
from results import store

from amqpcodec import arrow, rabbitmq

COUNT = 20_000  # deliveries in a stream
SIZE = 256  # octets of a body
TURNS = 9
ROUNDS = 9  # in each turn
FEEDS = 40  # of a stream to each of the workers that decode at once
CHUNK = 65536
NUMERIC = ["direction", "offset", "frame_type", "channel", "size", "class_id", "method_id"]
CONNECTIONS = 200  # of a capture
FILE_TURNS = 3  # with captures
# In a process of its own: reads a capture twice, and says how many rows, the seconds of the second time, and
# the most memory it had, in octets.
READER = """
import json, sys, time
from amqpcodec import arrow
from memory import peak
path, table = sys.argv[1:]
for turn in range(2):
    begin = time.perf_counter()
    rows = sum(batch.num_rows for batch in arrow.read_capture(path, table))
    seconds = time.perf_counter() - begin
print(json.dumps({"rows": rows, "seconds": seconds, "peak": peak()}))
"""
# Writes a capture to Parquet as `amqpcodec convert` does, but reads no further while it writes. Says for how
# many seconds it did not read.
WRITER = """
import sys, time
from amqpcodec import arrow
from amqpcodec._options import resolve
from amqpcodec.arrow.arrays import with_file
from amqpcodec.cli.tablefile import TableFile
from amqpcodec.options import FileOptions
path, target = sys.argv[1:]

class Alone(TableFile):
    def _hand_over(self):
        super()._hand_over()
        self._wait()

reader = arrow.read_capture(path, "messages")
batches, batch, reading, begin = iter(reader), None, 0.0, time.perf_counter()
with Alone(target, "parquet", reader.schema, **resolve(FileOptions, {"compression": "zstd"})) as file:
    while True:
        before = time.perf_counter()
        batch = next(batches, None)
        reading += time.perf_counter() - before
        if batch is None:
            break
        file.write(with_file(batch, path))
print(time.perf_counter() - begin - reading)
"""


def decoding(table: str, octets: bytes, columns: list[str] | None = None) -> Callable[[], object]:
    """Work that continues a stream: the same octets once more, to batches of the usual size."""
    decoder = arrow.BatchDecoder(table, columns=columns, direction=1)
    return lambda: decoder.feed(octets)


def check(octets: bytes, contents: list[corpus.Content]) -> None:
    """Compare the columns with the values that went into the stream."""
    batch = arrow.decode_messages(octets, direction=1)
    assert batch.num_rows == len(contents)
    expected: dict[str, list[Any]] = {
        "routing_key": [content.routing_key for content in contents],
        "delivery_tag": [content.delivery_tag for content in contents],
        "body": [content.body for content in contents],
        "headers": [[(key, str(value)) for key, value in content.headers.items()] for content in contents],
        "complete": [True] * len(contents),
    }
    for name, values in expected.items():
        assert batch.column(name).to_pylist() == values, name
    properties = batch.column("properties")
    assert properties.field("message_id").to_pylist() == [content.message_id for content in contents]
    assert properties.field("timestamp").to_pylist() == [content.moment for content in contents]
    frames = arrow.decode_frames(octets, direction=1, columns=NUMERIC)
    assert frames.num_rows == 3 * len(contents)
    assert sum(frames.column("size").to_pylist()) + 8 * frames.num_rows == len(octets)
    assert arrow.encode_messages(batch) == octets


def measured(work: Callable[[], object]) -> float:
    """Median nanoseconds of a call."""
    turn = once(work)
    return median(turn() for _ in range(TURNS))


def by_turns(ours: Callable[[], float], theirs: Callable[[], float]) -> tuple[float, float, float]:
    """Medians of the nanoseconds that two kinds of work say they took, and of their ratios turn by turn."""
    pairs = [(ours(), theirs()) for _ in range(TURNS)]
    first, second = zip(*pairs, strict=True)
    return median(first), median(second), median(one / other for one, other in pairs)


def once(work: Callable[[], object]) -> Callable[[], float]:
    """Gives the nanoseconds of the fastest of some rounds of the work: what disturbs one only adds to it."""

    def turn() -> float:
        times = []
        for _ in range(ROUNDS):
            begin = process_time_ns()
            work()
            times.append(process_time_ns() - begin)
        return min(times)

    work()
    return turn


def together(chunks: list[bytes], workers: int, *, processes: bool = False) -> float:
    """Seconds from the start of the first of some threads, or processes, to the end of the last."""
    forking: Any = multiprocessing.get_context("fork")
    worker: Any = forking.Process if processes else threading.Thread
    start: Any = forking.Barrier(workers) if processes else threading.Barrier(workers)
    spans: Any = forking.SimpleQueue() if processes else queue.SimpleQueue()

    def work() -> None:
        decoder = arrow.BatchDecoder("messages", direction=1)

        def decode(times: int) -> int:
            fed = (batch for _ in range(times) for chunk in chunks for batch in decoder.feed(chunk))
            return sum(batch.num_rows for batch in fed)

        decode(2)
        start.wait()
        begin = perf_counter()
        decode(FEEDS)
        spans.put((begin, perf_counter()))

    running = [worker(target=work) for _ in range(workers)]
    for each in running:
        each.start()
    taken = [spans.get() for _ in running]
    for each in running:
        each.join()
    return max(end for _, end in taken) - min(begin for begin, _ in taken)


def speedup(chunks: list[bytes], *, processes: bool = False) -> float:
    """How many times as much two workers do as one."""
    one, two = (partial(together, chunks, workers, processes=processes) for workers in (1, 2))
    return 2 * by_turns(one, two)[2]


def theirs(program: Path, octets: bytes) -> Callable[[], float]:
    """Gives the nanoseconds that rabbitmq-c takes for a stream."""
    stream = program.parent / "columnar.bin"
    stream.write_bytes(octets)
    command = [str(program), str(stream), str(ROUNDS)]

    def turn() -> float:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
        answer = json.loads(done.stdout)
        assert answer["frames"] == 3 * COUNT, "the anchor misread"
        return float(min(answer["nanoseconds"]))

    return turn


def encoding(octets: bytes, contents: list[corpus.Content]) -> dict[str, float]:
    """Nanoseconds a message of encoding from columns, and from Python values by way of objects."""
    batch = arrow.decode_messages(octets, direction=1)

    def by_objects() -> bytes:
        return b"".join(
            rabbitmq.encode_message(
                corpus.CHANNEL,
                rabbitmq.BasicDeliver(
                    each.consumer_tag, each.delivery_tag, False, each.exchange, each.routing_key
                ),
                rabbitmq.BasicProperties(
                    content_type=each.content_type,
                    delivery_mode=each.delivery_mode,
                    headers=each.headers,
                    timestamp=each.moment,
                    message_id=each.message_id,
                ),
                each.body,
                frame_max=corpus.FRAME_MAX,
            )
            for each in contents
        )

    assert by_objects() == octets
    objects, columns, ratio = by_turns(once(by_objects), once(lambda: arrow.encode_messages(batch)))
    return {"columns": columns / COUNT, "objects": objects / COUNT, "ratio": ratio}


def stream_figures(kind: str, program: Path | None) -> dict[str, Any]:
    """All figures of one kind of delivery."""
    contents = getattr(corpus, kind)(SIZE, COUNT)
    octets = corpus.delivery_stream(contents)
    check(octets, contents)
    few = ["offset", "exchange", "routing_key", "body_size"]
    figures: dict[str, Any] = {}
    decode = decoding("messages", octets)
    if program is None:
        figures["messages"] = measured(decode) / COUNT
    else:
        messages, rival, ratio = by_turns(once(decode), theirs(program, octets))
        figures |= {"messages": messages / COUNT, "rabbitmq-c": rival / COUNT, "ratio": ratio}
    return figures | {
        "messages, 4 columns": measured(decoding("messages", octets, few)) / COUNT,
        "frames, numbers, GB/s": len(octets) / measured(decoding("frames", octets, NUMERIC)),
        "two threads": speedup([octets]),
        "two threads, chunks": speedup(corpus.chunks(octets, CHUNK)),
        "two processes": speedup([octets], processes=True),
        "encode": encoding(octets, contents),
    }


def reading(path: Path, table: str) -> dict[str, Any]:
    """The best of some turns of reading a capture to one table."""
    command = [sys.executable, "-c", READER, str(path), table]
    turns = [
        json.loads(subprocess.run(command, cwd=Path(__file__).parent, check=True, capture_output=True).stdout)
        for _ in range(FILE_TURNS)
    ]
    return min(turns, key=lambda turn: float(turn["seconds"]))


def converting(path: Path, messages: int) -> list[tuple[float, float]]:
    """Seconds of turns from a capture to Parquet compressed by Zstandard, and of pyarrow's writer alone.

    Those of a conversion include the start of the command.
    """
    import pyarrow.parquet as pq

    def is_whole(target: Path) -> bool:
        rows = pq.ParquetFile(target).metadata.num_rows
        target.unlink()
        return bool(rows == messages)

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        target = Path(folder) / "messages.parquet"
        command = [sys.executable, "-m", "amqpcodec", "convert", "--table", "messages"]
        command += ["--compression", "zstd", str(path), str(target)]
        turns = []
        for _ in range(FILE_TURNS):
            begin = perf_counter()
            subprocess.run(command, check=True)
            seconds = perf_counter() - begin
            assert is_whole(target), "messages are missing"
            writer = [sys.executable, "-c", WRITER, str(path), str(target)]
            alone = float(subprocess.run(writer, check=True, capture_output=True).stdout)
            assert is_whole(target), "messages are missing"
            turns.append((seconds, alone))
        return turns


def capture_figures(megabytes: int, memory_megabytes: int) -> dict[str, Any]:
    """Return all figures of captures: megabytes a second, and octets of memory."""
    path, counts = capture(megabytes, CONNECTIONS)
    size = path.stat().st_size / 1e6
    frames, messages = reading(path, "frames"), reading(path, "messages")
    # Every connection begins with a protocol header, which is a row of its own.
    assert frames["rows"] == counts["frames"] + counts["connections"], "frames are missing"
    assert messages["rows"] == counts["messages"], "messages are missing"
    turns, theirs = converting(path, counts["messages"]), tshark(path)
    turns += converting(path, counts["messages"])
    large, counts = capture(memory_megabytes, CONNECTIONS)
    whole = reading(large, "messages")
    assert whole["rows"] == counts["messages"], "messages are missing"
    return {
        "megabytes": size,
        "frames": size / frames["seconds"],
        "messages": size / messages["seconds"],
        "parquet": size / median(seconds for seconds, _ in turns),
        "pyarrow's writer": size / median(alone for _, alone in turns),
        "share of the writer": median(alone / seconds for seconds, alone in turns),
        "tshark": size / theirs if theirs else None,
        "memory": {
            "megabytes": large.stat().st_size / 1e6,
            "connections": CONNECTIONS,
            "peak": whole["peak"],
        },
    }


def main() -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(description="Measure columns and captures.")
    parser.add_argument("--mb", type=int, default=1000, help="size of the capture")
    parser.add_argument("--memory-mb", type=int, default=4000, help="size of that whose memory is watched")
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    program = anchor.build(FOLDER)
    streams = {kind: stream_figures(kind, program) for kind in ("fixed", "varied")}
    store("columnar", streams)
    captures = capture_figures(given.mb, given.memory_mb)
    store("columnar-captures", captures)
    print(json.dumps([streams, captures], indent=1))


if __name__ == "__main__":
    main()
