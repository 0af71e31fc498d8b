"""Seeded captures, made once and kept in build/bench, and how long tshark takes for one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "bench"
SEED = 7
# What people ask tshark for: a line of fields a packet.
FIELDS = (
    "frame.time_epoch", "tcp.stream", "amqp.channel", "amqp.type", "amqp.method.class", "amqp.method.method",
    "amqp.method.arguments.exchange", "amqp.method.arguments.routing_key", "amqp.header.body-size",
)  # fmt: skip


def capture(megabytes: int, connections: int, seed: int = SEED) -> tuple[Path, dict[str, int]]:
    """Return a capture and the counts of its contents; make it if it is not there."""
    path = FOLDER / f"capture-{megabytes}-{connections}-{seed}.pcap"
    counts = path.with_name(path.name + ".json")
    if not (path.exists() and counts.exists()):
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(ROOT / "tools" / "synthetic_capture.py"), str(path)]
        command += ["--mb", str(megabytes), "--connections", str(connections), "--seed", str(seed)]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return path, json.loads(counts.read_text(encoding="utf-8"))


def tshark(path: Path) -> float | None:
    """Return the seconds that tshark takes for a line of fields a packet; None without it."""
    program = shutil.which("tshark")
    if program is None:
        return None
    command = [program, "-r", str(path), "-d", "tcp.port==5672,amqp", "-T", "fields"]
    for field in FIELDS:
        command += ["-e", field]
    begin = perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return perf_counter() - begin
