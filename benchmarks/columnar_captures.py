"""Captures to columns and to Parquet, beside tshark on the same file; rows are counted, then times taken.

    python benchmarks/columnar_captures.py [--mb 1000] [--memory-mb 4000]

The captures are made from a seed. Times are those of the clock on the wall, each of a process of its own that
reads the file once before. tshark runs between two halves of the conversions, whose median counts; what it is
asked for is what people ask it for: a line of fields a packet. Each conversion is followed by pyarrow's
writer alone, which is the limit: it gets the same batches in the same groups, and nothing else runs while it
writes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

ROOT = Path(__file__).parent.parent
RESULT = Path(__file__).parent / "results" / "columnar-captures.json"
CONNECTIONS = 200
TURNS = 3
FIELDS = (
    "frame.time_epoch", "tcp.stream", "amqp.channel", "amqp.type", "amqp.method.class", "amqp.method.method",
    "amqp.method.arguments.exchange", "amqp.method.arguments.routing_key", "amqp.header.body-size",
)  # fmt: skip
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


def capture(folder: Path, megabytes: int) -> tuple[Path, dict[str, int]]:
    """A seeded capture, made if it does not exist, and the counts of its contents."""
    path = folder / f"capture-{megabytes}.pcap"
    counts = path.with_name(path.name + ".json")
    if not counts.exists():
        command = [sys.executable, str(ROOT / "tools" / "synthetic_capture.py"), str(path)]
        command += ["--mb", str(megabytes), "--connections", str(CONNECTIONS)]
        subprocess.run(command, check=True)
    return path, json.loads(counts.read_text())


def reading(path: Path, table: str) -> dict[str, Any]:
    """The best of some turns of reading a capture to one table."""
    command = [sys.executable, "-c", READER, str(path), table]
    turns = [
        json.loads(subprocess.run(command, cwd=Path(__file__).parent, check=True, capture_output=True).stdout)
        for _ in range(TURNS)
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
        for _ in range(TURNS):
            begin = perf_counter()
            subprocess.run(command, check=True)
            seconds = perf_counter() - begin
            assert is_whole(target), "messages are missing"
            writer = [sys.executable, "-c", WRITER, str(path), str(target)]
            alone = float(subprocess.run(writer, check=True, capture_output=True).stdout)
            assert is_whole(target), "messages are missing"
            turns.append((seconds, alone))
        return turns


def tshark(path: Path) -> float | None:
    """Seconds that tshark takes for a line of fields a packet; None without it."""
    program = shutil.which("tshark")
    if program is None:
        return None
    command = [program, "-r", str(path), "-d", "tcp.port==5672,amqp", "-T", "fields"]
    for field in FIELDS:
        command += ["-e", field]
    begin = perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return perf_counter() - begin


def measured(megabytes: int, memory_megabytes: int, folder: Path) -> dict[str, Any]:
    """All figures: megabytes a second, and octets of memory."""
    path, counts = capture(folder, megabytes)
    size = path.stat().st_size / 1e6
    frames, messages = reading(path, "frames"), reading(path, "messages")
    # Every connection begins with a protocol header, which is a row of its own.
    assert frames["rows"] == counts["frames"] + counts["connections"], "frames are missing"
    assert messages["rows"] == counts["messages"], "messages are missing"
    turns, theirs = converting(path, counts["messages"]), tshark(path)
    turns += converting(path, counts["messages"])
    large, counts = capture(folder, memory_megabytes)
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
    parser = argparse.ArgumentParser(description="Measure captures to columns.")
    parser.add_argument("--mb", type=int, default=1000, help="size of the capture")
    parser.add_argument("--memory-mb", type=int, default=4000, help="size of that whose memory is watched")
    given = parser.parse_args()
    folder = ROOT / "build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    figures = measured(given.mb, given.memory_mb, folder)
    RESULT.write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
