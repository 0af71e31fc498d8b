"""The targets the project set itself, and what a stored run says about each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from results import Results

PEERS = ("py-amqp", "py-amqp Cython", "pika", "pamqp")
MB = 10**6


class Verdict(NamedTuple):
    """One line of the table of targets; `met` is None where it was not measured."""

    work: str
    target: str
    reached: str
    met: bool | None


def verdicts(results: Results) -> Iterator[Verdict]:
    """Every target in turn. First what programs meet: thousands of deliveries, looped over in Python."""
    for kind in ("numbered", "varied"):
        item = f"consume deliveries, 256 B, {kind}"
        yield _ratios(results, item, {"py-amqp": 15, "pika": 20, "pamqp": 35})
        yield _anchor(results, item, 4)
        yield _consume_messages(results, kind)
    for kind in ("fixed", "varied"):
        yield _ratios(results, f"decode deliveries, 256 B, {kind}", {"py-amqp": 14, "pika": 18, "pamqp": 30})
        yield _anchor(results, f"decode deliveries, 256 B, {kind}", 4.5)
        yield _ratios(results, f"encode publishes, 256 B, {kind}", {"pika": 16, "py-amqp": 25, "pamqp": 30})
    for way in ("decode", "encode"):
        yield _best(results, f"{way} table, 10 mixed", 12)
    yield _best(results, "decode table, 10 mixed, varied", 12)
    yield _ack_decode(results)
    yield _best(results, "encode basic.ack", 12)
    for kind in ("fixed", "varied"):
        yield _raw(results, kind)
    for headers, most in ((3, 0.4), (10, 0.25)):
        yield _forward(results, headers, most)
    yield _large_body(results)
    yield _parts(results)
    yield _flat(results)
    yield _pure(results)
    yield _import(results)
    yield _memory(results)
    yield from _wheel(results)


def _ratios(results: Results, item: str, least: dict[str, float]) -> Verdict:
    reached = {peer: results.ratio(item, peer) for peer in least}
    known = {peer: ratio for peer, ratio in reached.items() if ratio is not None}
    return Verdict(
        item,
        ", ".join(f"{factor:g}x {peer}" for peer, factor in least.items()),
        ", ".join(f"{ratio:.1f}x {peer}" for peer, ratio in known.items()) or "not measured",
        all(known[peer] >= least[peer] for peer in known) if known else None,
    )


def _best(results: Results, item: str, least: float) -> Verdict:
    ratio = results.best_ratio(item, "amqpcodec", PEERS)
    return _verdict(item, f"{least:g}x the best other library", ratio, least, "x")


def _verdict(work: str, target: str, reached: float | None, least: float, unit: str) -> Verdict:
    if reached is None:
        return Verdict(work, target, "not measured", None)
    return Verdict(work, target, f"{reached:.2f}{unit}", reached >= least)


def _at_most(work: str, target: str, reached: float | None, most: float, unit: str) -> Verdict:
    if reached is None:
        return Verdict(work, target, "not measured", None)
    return Verdict(work, target, f"{reached:.3g}{unit}", reached <= most)


def _consume_messages(results: Results, kind: str) -> Verdict:
    item = f"consume messages, 256 B, {kind}"
    frames = f"consume deliveries, 256 B, {kind}"
    inverse = results.ratio(item, "amqpcodec", base=frames)
    return _at_most(item, "at most 0.8 of their frames", 1 / inverse if inverse else None, 0.8, "x")


def _anchor(results: Results, item: str, most: float) -> Verdict:
    figures = results.anchor.get(item)
    ratio = figures["amqpcodec"]["min"] / figures["rabbitmq-c"]["min"] if figures else None
    return _at_most(f"{item}, beside rabbitmq-c", f"at most {most:g}x its time", ratio, most, "x its time")


def _ack_decode(results: Results) -> Verdict:
    figure = results.items.get("decode basic.ack", {}).get("amqpcodec")
    return _at_most("decode basic.ack", "at most 90 ns a frame", figure, 90, " ns")


def _raw(results: Results, kind: str) -> Verdict:
    full = f"decode deliveries, 256 B, {kind}"
    ratio = results.ratio(f"raw tables, 256 B, {kind}", "amqpcodec", base=full)
    return _verdict(f'deliveries with tables="raw", {kind}', "1.5x our full decode", ratio, 1.5, "x")


def _forward(results: Results, headers: int, most: float) -> Verdict:
    item = f"forward, {headers} headers"
    ratio = results.ratio(f"{item}, dicts", "amqpcodec", base=f"{item}, raw properties")
    return _at_most(f'{item}, properties="raw"', f"at most {most:g}x the time by dicts", ratio, most, "x")


def _large_body(results: Results) -> Verdict:
    ratio = results.ratio("body frame of 128 KiB", "amqpcodec", of="memcpy")
    return _at_most("decode a body of 128 KiB", "at most 1.3x one memcpy", ratio, 1.3, "x a memcpy")


def _parts(results: Results) -> Verdict:
    ratio = results.ratio("publish parts, 131072 B", "amqpcodec", of="memcpy")
    measured = ratio is not None
    # The benchmark itself asserts that the buffers are views of the caller's body.
    reached = f"no copy; {ratio:.2f}x the time of a copy" if measured else "not measured"
    return Verdict(
        "encode_message_parts, 128 KiB", "no copy of the body", reached, True if measured else None
    )


def _flat(results: Results) -> Verdict:
    sizes = [1_000, 100_000, 1_000_000, 10_000_000]
    cells = [results.items.get(f"octet by octet, {size} buffered", {}).get("amqpcodec") for size in sizes]
    known = [cell for cell in cells if cell is not None]
    reached = (
        ", ".join(f"{nanoseconds:.0f}" for nanoseconds in known) + " ns an octet" if known else "not measured"
    )
    met = max(known) <= 2.5 * min(known) if known else None
    return Verdict("chunks of 1 octet, 1 KB to 10 MB buffered", "time per octet flat", reached, met)


def _pure(results: Results) -> Verdict:
    ratios = {item: results.best_ratio(item, "amqpcodec pure", ("pika", "py-amqp")) for item in results.items}
    slower = {
        item: ratio for item, ratio in ratios.items() if ratio is not None and ratio < 1 and item != "import"
    }
    worst = min(slower, key=lambda item: slower[item], default="")
    reached = (
        f"slower at {len(slower)}, furthest at {worst} ({slower[worst]:.2f}x)" if slower else "nowhere slower"
    )
    target = "no slower than pika and py-amqp's pure build"
    return Verdict("pure build, every work item", target, reached, not slower)


def _import(results: Results) -> Verdict:
    info = results.extra.get(("import", "amqpcodec"))
    return _at_most(
        "import amqpcodec.rabbitmq", "under 15 ms", info["milliseconds"] if info else None, 15, " ms"
    )


def _memory(results: Results) -> Verdict:
    info = results.extra.get(("peak memory of a stream of deliveries", "amqpcodec"))
    growth = (info["peak"] - info["start"]) / MB if info else None
    messages = f", {info['messages']} deliveries" if info else ""
    return _at_most(f"peak memory{messages}", "under 8 MB above the start", growth, 8, " MB")


def _wheel(results: Results) -> Iterator[Verdict]:
    size = results.budgets.get("wheel, octets")
    yield _at_most("wheel", "at most 2.95 MB", size and size / MB, 2.95, " MB")
    seconds = results.budgets.get("build, CPU s")
    yield _at_most("build from source, on all cores together", "at most 100 CPU s", seconds, 100, " s")


def column_verdicts(results: Results) -> Iterator[Verdict]:
    """The targets of columns and captures."""
    for kind, figures in results.columns.items():
        work = f"deliveries of 256 B to messages, {kind}"
        yield _at_most(work, "at most 2x rabbitmq-c's time", figures.get("ratio"), 2, "x its time")
        yield _verdict(f"{work}, two threads", "1.7x one", figures["two threads"], 1.7, "x")
        chunks = figures.get("two threads, chunks")
        yield _verdict(f"{work}, two threads, 64 KiB at a time", "1.7x one", chunks, 1.7, "x")
        rate = figures["frames, numbers, GB/s"]
        yield _verdict(f"numbers of frames, {kind}", "3 GB/s", rate, 3, " GB/s")
        work = f"encode messages from columns, {kind}"
        yield _verdict(work, "5x the object path", figures["encode"]["ratio"], 5, "x")
    if results.captures:
        yield from _capture_verdicts(results.captures)


SPARK_LEAST = {
    "frames, numbers": 700,
    "messages": 0.8,
    "messages, counted": 1.0,
    "messages, 3 columns": 2.5,
    "pcap_to_parquet": 0.7,
    "write.parquet": 0.18,
    "from_amqp": 1.2,
    "decode_frames": 1.5,
    "write.format": 0.3,
    "parquet_to_stream": 1.0,
}
SPARK_SHARES = {"pcap_to_parquet": 75}  # of the ceiling, where it is not 70%
DIVIDED = ", divided"  # behind the name of a job on one capture: by two tasks, beside one


def spark_verdicts(results: Results) -> Iterator[Verdict]:
    """The targets of captures and tables of frames through Spark, on two cores."""
    jobs = results.spark["jobs"]
    for name, least in SPARK_LEAST.items():
        job = jobs[name]
        unit = " MB/s" if job["unit"] == "octets" else " M/s"
        yield _verdict(name, f"{least:g}{unit}", job["local[2]"], least, unit)
        share = SPARK_SHARES.get(name, 70)
        yield _verdict(f"{name}, beside its ceiling", f"{share}%", 100 * job["of ceiling"], share, "%")
        if "beside local[1]" in job:
            yield _verdict(f"{name}, beside local[1]", "1.6x", job["beside local[1]"], 1.6, "x")
        if "beside tshark" in job:
            work = f"{name}, beside tshark, one core each"
            yield _verdict(work, "10x its messages", job["beside tshark"], 10, "x")
    for name, job in jobs.items():
        if name.endswith(DIVIDED):
            yield _verdict(f"{name}: two tasks beside one", "1.5x", job["of ceiling"], 1.5, "x")
    if results.spark_memory:
        yield _spark_memory(results.spark_memory)
    if results.spark_equality:
        yield _spark_equality(results.spark_equality)


# Ratios to the client without acceleration: without `loops`, and with them.
CLIENT_LEAST = {
    ("aiormq", "publish"): (1.5, None),
    ("aiormq", "consume"): (1.6, None),
    ("aio_pika", "publish"): (1.65, None),
    ("aio_pika", "consume"): (1.8, None),
    ("amqpstorm", "publish"): (2.5, None),
    ("amqpstorm", "consume"): (2.0, None),
    ("pika_blocking", "publish"): (1.6, None),
    ("pika_blocking", "consume"): (1.2, 1.7),
    ("pika_select", "consume"): (None, 2.2),
    ("pyamqp", "publish"): (2.8, None),
    ("pyamqp", "consume"): (None, 4.8),
    ("kombu", "publish"): (2.35, None),
    ("kombu", "consume"): (1.3, 4.3),
}


def broker_verdicts(found: dict[str, Any]) -> Iterator[Verdict]:
    """Return the targets of the broker for tests, and what it reached."""
    for work, name, most in (
        ("start of a broker on its thread", "start_ms", 20),
        ("first import, beyond that of asyncio", "import_ms", 60),
    ):
        yield Verdict(work, f"at most {most} ms", f"{found[name]:.1f} ms", found[name] <= most)
    rate = found["through"]
    work = "published, confirmed, delivered, acknowledged, on one core"
    yield Verdict(work, "20,000 a second", f"{rate:,.0f} a second", rate >= 20_000)


def client_verdicts(results: Results) -> Iterator[Verdict]:
    """The targets of peers and clients that `amqpcodec.compat` accelerates."""
    for item, found in results.clients["calls"].items():
        yield _verdict(item, f"{found['target']:g}x", found["ratio"], found["target"], "x")
    for (client, action), (codec, loop) in CLIENT_LEAST.items():
        ratios = results.clients["clients"].get(client, {}).get(action, {}).get("ratios", {})
        if codec is not None:
            yield _verdict(f"{client}, {action}", f"{codec:g}x", ratios.get("accelerated"), codec, "x")
        if loop is not None:
            work = f"{client}, {action}, with `loops`"
            yield _verdict(work, f"{loop:g}x", ratios.get("loops"), loop, "x")


# How many times the CPU time of `aio.Client` others take to publish and to consume; and it, theirs.
LAYER_LEAST = {
    "aio-pika": (20, 30),
    "aio-pika, drop-in": (14, 22),
    "pika select": (4, 6),
    "Node amqplib": (2.5, 2.5),
}
LAYER_MOST = {"floor of asyncio": (1.9, None), "librabbitmq": (2.2, 1.8)}


def client_layer_verdicts(results: Results) -> Iterator[Verdict]:
    """The targets of `aio.Client`."""
    clients = results.client_layer["clients"]
    for at, action in enumerate(("publish", "consume")):
        for client, targets in LAYER_LEAST.items():
            least = targets[at]
            ratio = clients.get(client, {}).get(action, {}).get("ratio")
            yield _verdict(f"{action}, {client}", f"{least:g}x our time", ratio, least, "x our time")
        for client, limits in LAYER_MOST.items():
            most = limits[at]
            ratio = clients.get(client, {}).get(action, {}).get("ratio")
            if most is not None:
                work, inverse = f"{action}, ours beside {client}", ratio and 1 / ratio
                yield _at_most(work, f"at most {most:g}x its time", inverse, most, "x its time")
    if results.client_memory:
        first, last = results.client_memory.values()
        messages = max(map(int, results.client_memory))
        work = f"peak memory after {messages:,} messages"
        yield _at_most(work, "at most 1.05x that after a tenth", last / first, 1.05, f"x, {last / MB:.1f} MB")


def _spark_memory(found: dict[str, Any]) -> Verdict:
    work = f"capture of {found['octets'] / 1e9:.1f} GB, {found['connections']} connections"
    # The benchmark fails if a job does, or if rows are missing.
    jobs = ", ".join(found["seconds"])
    return Verdict(work, f"spark.executor.pyspark.memory {found['limit']}", f"all rows: {jobs}", True)


def _spark_equality(found: dict[str, Any]) -> Verdict:
    size = f"{found['octets'] / 1e9:.1f} GB"
    work = f"capture of {size}, packets late, twice and lost, in {len(found['apart'])} ways"
    rows = ", ".join(f"{table} {rows:,}" for table, rows in found["rows"].items())
    apart = sorted({table for tables in found["apart"].values() for table in tables})
    reached = f"others in {', '.join(apart)}" if apart else f"equal: {rows}"
    return Verdict(work, "all rows are `amqpcodec.arrow`'s", reached, not apart)


def _capture_verdicts(figures: dict[str, Any]) -> Iterator[Verdict]:
    file = f"capture of {figures['megabytes']:.0f} MB"
    yield _verdict(f"{file} to frames", "700 MB/s", figures["frames"], 700, " MB/s")
    yield _verdict(f"{file} to messages", "400 MB/s", figures["messages"], 400, " MB/s")
    yield _verdict(f"{file} to Parquet, messages, zstd", "300 MB/s", figures["parquet"], 300, " MB/s")
    share = figures.get("share of the writer")
    work = f"{file} to Parquet, beside pyarrow's writer alone"
    yield _verdict(work, "80% of its speed", share and 100 * share, 80, "%")
    theirs = figures["tshark"]
    ratio = figures["parquet"] / theirs if theirs else None
    yield _verdict(f"{file} to Parquet, beside tshark", "20x its speed", ratio, 20, "x")
    memory = figures["memory"]
    work = f"peak memory, {memory['megabytes']:.0f} MB with {memory['connections']} connections"
    yield _at_most(work, "under 400 MB", memory["peak"] / 1e6, 400, " MB")
