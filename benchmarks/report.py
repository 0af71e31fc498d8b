"""Write docs/benchmarks.md and docs/benchmarks.svg from the stored results of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import chart
from peers import FACTORIES
from prose import paragraph, verdict_table
from report_client import client_section
from report_spark import spark_section
from results import FOLDER, Results
from targets import MB, PEERS, broker_verdicts, client_verdicts, column_verdicts, verdicts

DOCS = Path(__file__).parent.parent / "docs"
OTHERS = ("amqpcodec pure", "py-amqp", "py-amqp Cython", "pika", "pamqp")
MODES = ("accelerated", "loops")  # of clients
FUNCTIONS = 6  # of each client, where the time is left
ASYNCIO_MODES = ("uvloop", "accelerated", "accelerated, uvloop", "seam")
INTERPRETER_ITEMS = tuple(
    f"{action}, {kind}"
    for action in ("decode a delivery", "encode a publish")
    for kind in ("fixed", "varied")
)

INTRODUCTION = """\
# Benchmarks

`make bench-report` writes this page; it is not edited by hand. It shows stored runs of `make bench`,
`bench-c`, `bench-budgets`, `bench-profile`, `bench-interpreters`, `bench-clients`, `bench-client-layer`,
`bench-connections`, `bench-brokers`, `bench-columnar`, `bench-spark`, `bench-spark-memory` and
`spark-equality`.

All libraries do the same work on the same octets, in one process and one run. Their results are compared
before the work is timed. `make bench` makes some such runs, minutes apart, and keeps the shortest round of
each library, since other work on the machine only adds to it. Ratios are meaningful; times on another machine
will differ. The work items are in `benchmarks/bench_*.py`. The code for each library is in
`benchmarks/peers/`.

- *Consume* items are what programs meet, and come first: 2,000 deliveries in chunks of 64 KiB, a loop in
  Python over the frames, and a field read of each. *Decode* items drop the frames unread.
- Decoding turns every field of every frame into a Python object. Libraries that take one frame at a time are
  passed exactly one, so that none pays for copying the rest of its buffer.
- Encoding includes constructing the method and properties objects, and ends in one bytes object a message.

![bar chart](benchmarks.svg)

## Cached and new data

Caches help with data that repeats: the processor's, and those of a decoder for short strings and field
tables. Each figure says by its name what it is of.

| data | what repeats | what is new each time |
| --- | --- | --- |
| *fixed*: one delivery, 128 times | everything; the processor's cache holds it | nothing |
| *numbered*: 2,000 deliveries | strings; the table, which the decoder copies | tags, 0.9 MB of octets |
| *varied*: by a seeded generator | names of exchanges, consumers and header keys | all else |
| a single table, method or content header | everything, as of *fixed* | nothing |
| calls of other libraries | everything, as of *fixed* | nothing |
| connections, clients, brokers | some strings; of clients, tables | tags; of brokers, ids and headers |
| captures, Spark | names, keys | all else; files are read before, and come from memory |

So the figures of *fixed* data, of single tables, methods and content headers, and of calls of other libraries
are the best case. *Varied* ones are what to expect of messages that have ids and times of their own.
"""

OWN_CALLS = """\
## Watching your own codec calls

`python -m amqpcodec.bench` measures the codec on octets of your own: a pcap or pcapng file, or with
`--input stream` the octets of one direction. It needs nothing but amqpcodec. It times the build in use, in
the mix of frames that the file has:

| work | what is timed |
| --- | --- |
| decode frames | `FrameDecoder` on every connection and direction |
| decode messages and other frames | the same by `MessageDecoder` |
| encode frames | `encode_frame` of every frame that was decoded |
| encode messages | `encode_message` of every message that was decoded |

What is encoded is read back and compared before it is timed.

    python -m amqpcodec.bench traffic.pcap
    python -m amqpcodec.bench traffic.pcap --json > before.json
    pip install --upgrade amqpcodec
    python -m amqpcodec.bench traffic.pcap --compare before.json --margin 10%

The last command exits with code 1 if a work is slower by more than the margin, and names it. Code 2 means
that the runs cannot be compared: they are of other octets or of another interpreter. Ratios differ between
models of processors, too. A difference of that kind is named; measure both versions on one machine.

Times are compared by their ratio to a *yardstick*, measured in the same run in turns with the codec. A slow
machine is slow for both. Yardsticks are pamqp and pika where they are installed, and always a loop of the
standard library. A yardstick counts if both runs have it in the same version.

`--json` prints the run in the form of pytest-benchmark, so `pytest-benchmark compare` reads it. Stored runs
are compared as they are: `python -m amqpcodec.bench now.json --compare before.json`. In GitHub Actions, two
releases are compared on one machine:

    - run: pip install amqpcodec==0.1.0 && python -m amqpcodec.bench traffic.pcap --json > before.json
    - run: pip install --upgrade amqpcodec
    - run: python -m amqpcodec.bench traffic.pcap --compare before.json | tee -a "$GITHUB_STEP_SUMMARY"
      shell: bash

`make bench-against BASE=<revision>` compares this project with an earlier revision of itself, on one
machine: a pull request with its base, or a change with what was before. Both are compiled, each in an
environment of its own. The items of `benchmarks/works.py` are timed in turn, in pairs of processes on one
core. The table has the median of the ratios of the pairs, the least and the largest, and the ratio of the
fastest process of each, which other work has disturbed least. What the revision lacks is named.

`make bench-ci` compares with a stored baseline, which `make bench-ci-accept` renews. It takes the work items
of `benchmarks/ci.py` from `make bench`, and the instructions of `make bench-guard`. The baseline holds for
one interpreter and one model of processor; elsewhere the table says that times are not compared.

The margin is 10% for times. Two sets of three passes of the same code differed by at most 5.5% in any row,
and by 3.5% in the median. The margin is 3% for instructions, which repeat to within 1%.
"""


def main() -> int:
    """Read, write."""
    if not (FOLDER / "bench.json").exists():
        print("bench-report: nothing stored; run `make bench` first")
        return 1
    results = Results()
    DOCS.mkdir(exist_ok=True)
    (DOCS / "benchmarks.svg").write_text(chart.draw(results), encoding="utf-8")
    text = "\n".join(
        [
            INTRODUCTION,
            *_machine(results),
            *_targets(results),
            *_times(results),
            *_consuming(results),
            *_small_methods(results),
            *_forwarding(results),
            *_footprint(results),
            *_interpreters(results),
            *_clients(results),
            *_connections(results),
            *client_section(results),
            *_brokers(results),
            *_columns(results),
            *spark_section(results),
            OWN_CALLS,
            *_profile(results),
        ]
    )
    (DOCS / "benchmarks.md").write_text(text.rstrip() + "\n", encoding="utf-8")
    adopting = DOCS / "adopting.md"
    adopting.write_text(
        _between_marks(adopting.read_text(encoding="utf-8"), _gains(results)), encoding="utf-8"
    )
    return 0


def _machine(results: Results) -> Iterator[str]:
    info = results.run["machine_info"]
    cpu = info.get("cpu") or {}
    commit = results.run.get("commit_info") or {}
    yield "## The run\n"
    yield "| | |\n| --- | --- |"
    yield f"| date | {results.run['datetime'][:16].replace('T', ' ')} UTC |"
    if commit.get("id"):
        yield f"| commit | {commit['id'][:12]} |"
    interpreter = f"{info['python_implementation']} {info['python_version']}, {info['python_compiler']}"
    yield f"| interpreter | {interpreter} |"
    yield f"| machine | {cpu.get('brand_raw') or info['machine']}, {info['cores']} cores, {info['system']} |"
    for name, version in results.run["versions"].items():
        yield f"| {name} | {version} |"
    for name, reason in results.run["missing"].items():
        yield f"| {name} | missing: {reason} |"
    if results.anchor:
        yield f"| rabbitmq-c | {next(iter(results.anchor.values()))['version']} |"
    yield ""


def _targets(results: Results) -> Iterator[str]:
    yield "## Targets\n"
    yield "Compiled build, unless the line says otherwise.\n"
    yield from verdict_table(verdicts(results))
    yield ""


def _times(results: Results) -> Iterator[str]:
    yield "## Times\n"
    yield from paragraph("""
        The time of one operation. In brackets: how many times that of the compiled build.
    """)
    names = [name for name in FACTORIES if name not in results.run["missing"]]
    yield "| work | " + " | ".join(names) + " |\n| --- |" + " ---: |" * len(names)
    for item, figures in results.items.items():
        if item != "import" and sum(name in figures for name in OTHERS) > 1:
            cells = " | ".join(_cell(figures, name) for name in names)
            yield f"| {item} | {cells} |"
    yield "\n### amqpcodec alone, and beside a copy of the octets\n"
    yield "| work | | | |\n| --- | ---: | ---: | ---: |"
    for item, figures in results.items.items():
        if item.startswith(("raw tables", "forward", "body frame", "publish parts", "octet by octet")):
            cells = " | ".join(f"{name} {_cell(figures, name)}" for name in figures)
            yield f"| {item} | {cells}{' |' * (4 - len(figures))}"
    yield from _anchor(results)


INTERPRETER = ("libpython3", "libc", "_datetime")  # object files of what is not ours


def _consuming(results: Results) -> Iterator[str]:
    item = "consume deliveries 256 B varied"
    if item not in results.profile:
        return
    profile = results.profile[item]
    theirs = sum(profile["objects"].get(name, 0) for name in INTERPRETER)
    ours = [(share, name) for name, _, share in profile["functions"] if "_c_" in name]
    most, name = max(ours)
    item = item.replace(" 256 B ", ", 256 B, ")
    yield "\n## Varied deliveries\n"
    yield from paragraph(
        f"""
        A delivery of `{item}` takes {profile["total"]:,} instructions: 15 objects are made and freed, one of
        them a dict of 3 entries, and a loop in Python reads three fields. {theirs:.0%} of them are the
        interpreter's. The rest is spread over the codec: `{name}` has the most, {most:.0%}. The functions are
        at the end of this page.
    """
    )
    yield from _why_varied()


def _why_varied() -> Iterator[str]:
    """Yield reasons by callgrind, of the items of `works.py`: messages of 602 octets, five headers."""
    yield from paragraph("""
        The targets beside py-amqp and rabbitmq-c are missed for the objects. Take messages with five headers
        and two ids. A program in C that makes and frees the same objects, and reads no octet, needs 57% of
        the instructions of `MessageDecoder`, and 59% of those of `FrameDecoder`. rabbitmq-c makes no objects.
        To read a header takes 140 instructions, and the dict takes 190 more. Straight functions for deliver
        and its properties save 4% of the instructions of either. What is left in them is mostly texts: they
        are compared, looked for, and made.
    """)
    yield from paragraph(
        """
        A `Connection` that reads a delivery and acknowledges it takes 9,700 instructions. 45% of them are
        the interpreter's: the loop, the event, the ack. Channel, tags and state share 12%, for they refuse
        what is out of order. `encode_message` of a varied publish of 256 B that was built before takes 1,700.
        Three functions that write the message, the method and the headers have 58% of them, the interpreter
        and libc 32%: the call, the object that it returns, copying.
    """,
        "",
    )


def _small_methods(results: Results) -> Iterator[str]:
    item = "encode basic.ack"
    ratio = results.best_ratio(item, "amqpcodec", PEERS)
    if item not in results.profile or ratio is None:
        return
    profile = results.profile[item]
    theirs = sum(profile["objects"].get(name, 0) for name in INTERPRETER)
    yield "\n## Small methods\n"
    yield from paragraph(
        f"""
        `{item}` is {ratio:.1f} times as fast as the best other library; the target is 12. {theirs:.0%} of its
        {profile["total"]:,} instructions are the interpreter's: a call of the benchmark's own function, which
        every library pays; two calls of ours; and two objects made and freed. The frame is written right into
        its bytes object, and the method's arguments into fresh memory.
    """,
        "",
    )


def _forwarding(results: Results) -> Iterator[str]:
    yield "\n## Forwarding\n"
    yield from paragraph("""
        Publishes of 256 B come in chunks of 64 KiB, and no two are equal. Each is sent on as a delivery with
        the same properties and body (`benchmarks/bench_forwarding.py`). With `properties="raw"` the content
        header is not decoded. These are instructions of one message in the compiled build, as
        `make bench-guard` counts them; the loop in Python is part of them.
    """)
    yield '| headers of a message | decoded | `properties="raw"` | ratio |\n| --- | ---: | ---: | ---: |'
    for headers in (0, 3, 10):
        decoded, raw = (results.guard[f"forward, {headers} headers, {way}"] for way in ("dicts", "raw"))
        yield f"| {headers} | {decoded:,} | {raw:,} | {raw / decoded:.2f} |"
    yield ""
    yield from paragraph(
        """
        The targets are 0.45, 0.30 and 0.20 of what decoding took when they were set: 7,082, 9,605 and 15,848
        instructions. They are missed: 0.51, 0.38 and 0.25 are reached. Of the instructions with three headers
        and raw properties, the loop in Python takes 24%, reading 23%, writing 16%, and the call of `Deliver`
        3%. A quarter makes and frees the nine objects of a message. If writing cost nothing, three headers
        would take 0.33.
    """,
        "",
    )


def _anchor(results: Results) -> Iterator[str]:
    if not results.anchor:
        return
    yield "\n### Beside C\n"
    yield from paragraph("""
        Both decode the same file, in turns. rabbitmq-c fills C structs whose strings point into its buffer.
    """)
    yield "| work | rabbitmq-c | amqpcodec | ratio |\n| --- | ---: | ---: | ---: |"
    for item, figures in results.anchor.items():
        c, python = figures["rabbitmq-c"]["min"], figures["amqpcodec"]["min"]
        yield f"| {item} | {_time(c)} | {_time(python)} | {python / c:.1f} |"


def _footprint(results: Results) -> Iterator[str]:
    yield "\n## Beside time\n"
    yield "| | |\n| --- | ---: |"
    for (item, peer), info in results.extra.items():
        if item == "import":
            yield f"| import, {peer} | {info['milliseconds']:.1f} ms |"
        elif item.startswith("peak memory"):
            growth = (info["peak"] - info["start"]) / MB
            yield f"| memory added by decoding {info['messages']} deliveries, {peer} | {growth:.1f} MB |"
    for item in ("installed", "wheel"):
        if f"{item}, octets" in results.budgets:
            yield f"| {item} | {results.budgets[f'{item}, octets'] / MB:.2f} MB |"


def _interpreters(results: Results) -> Iterator[str]:
    found = results.interpreters
    if not found:
        return
    yield "\n## Other interpreters\n"
    yield from paragraph(f"""
        The time of one message of 256 B, of a thousand at a time (`make bench-interpreters`). A delivery is
        three frames. The interpreters alternate in {found["rounds"]} rounds; the best time counts. *At first*
        is the first thousand of a new process, before PyPy has compiled anything.
    """)
    yield "| interpreter | build | decode, fixed | varied | encode, fixed | varied | decode, at first |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for name, builds in found["interpreters"].items():
        for build, items in builds.items():
            times = [_time(items[item]["best"]) for item in INTERPRETER_ITEMS]
            times.append(_time(items[INTERPRETER_ITEMS[0]]["first"]))
            yield f"| {name} | {'compiled' if build == 'c' else 'pure'} | {' | '.join(times)} |"
    for name, builds in found["interpreters"].items():
        if "PyPy" in name:
            frame = builds["py"][INTERPRETER_ITEMS[0]]["best"] / 3
            yield f"\nOnce warm, PyPy takes {_time(frame)} for a frame of a delivery."


def _clients(results: Results) -> Iterator[str]:
    found = results.clients
    if not found:
        return
    yield "\n## Clients with this codec inside\n"
    machine = f"CPython {found['python']}, {found['cores']} cores"
    yield from paragraph(f"""
        Codec calls of other libraries, and whole clients, as they are and with `amqpcodec.compat`
        (`make bench-clients`; {machine}). Whole clients publish and consume {found["messages"]:,} messages of
        256 B at a RabbitMQ on the same machine. Times are CPU time of the client's process, for one message.
        All configurations alternate in {found["rounds"]} rounds. Figures are medians of the rounds. Ratios
        are medians of the ratios within a round.
    """)
    yield from verdict_table(client_verdicts(results))
    yield "\n| calls | as they are | accelerated | |\n| --- | ---: | ---: | ---: |"
    for item, call in found["calls"].items():
        times = f"{_time(call['stock'] * 1000)} | {_time(call['accelerated'] * 1000)}"
        yield f"| {item} | {times} | {call['ratio']:.1f}x |"
    yield ""
    yield from _gains(results)
    yield from _left(results)


def _left(results: Results) -> Iterator[str]:
    """Show where the time of clients goes that consume."""
    profiles = results.clients.get("profiles")
    if not profiles:
        return
    yield ""
    yield from paragraph("""
        Where the time goes that is left: consumers with `loops`, sampled by CPU time. What runs in C and in
        the system, such as `send` and this codec, counts to the function of Python that runs next. That is
        the one that has called it, or the one that it calls.
    """)
    yield "| client | functions |\n| --- | --- |"
    for client, shares in profiles.items():
        listed = ", ".join(f"`{name}` {share:.0%}" for name, share in list(shares.items())[:FUNCTIONS])
        yield f"| {client} | {listed} |"


RECEIVERS = {
    "MessageDecoder": "`MessageDecoder`, which knows no connection",
    "Connection": "`Connection`, client",
    "Connection, server": "`Connection`, server: the same messages as publishes",
    "AmqpStream": "`amqpcodec.aio`, on a transport that is fed; a task iterates over its events",
    "Connection, pure build": "`Connection`, client, pure build",
    "Connection, server, pure build": "`Connection`, server, pure build",
    "aiormq FrameReceiver": "aiormq's `FrameReceiver` alone: three frames a message, which nobody joins",
    "aiormq": "aiormq's `FrameReceiver`, connection and channel: the consumer is called in a task",
    "pika": "pika's connection and channel (`_on_data_available`), on an adapter that is fed",
    "py-amqp": "py-amqp's `Connection.drain_events`, on a socket that is fed",
}


def _connections(results: Results) -> Iterator[str]:
    found = results.connections
    if not found:
        return
    yield "\n## Connections\n"
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    yield from paragraph(f"""
        From octets to a consumer that has method, properties and body of each message (`make
        bench-connections`; CPython {found["python"]}, {found["cores"]} cores). All receive the same octets in
        one process, without sockets: {found["messages"]:,} deliveries of 256 B that all differ, in chunks of
        64 KiB, after a handshake, for consumers that need not acknowledge. Every value is compared before
        anything is timed. Each of {found["rounds"]} rounds times each way once, in CPU time. Figures are
        medians; ratios are medians of those within a round. Versions: {versions}.
    """)
    yield "| way | messages a second | time, beside `Connection` |\n| --- | ---: | ---: |"
    for name, label in RECEIVERS.items():
        if name in found["ways"]:
            figures = found["ways"][name]
            yield f"| {label} | {1e9 / figures['nanoseconds']:,.0f} | {figures['ratio']:.2f}x |"


def _brokers(results: Results) -> Iterator[str]:
    found = results.brokers
    if not found:
        return
    yield "\n## The broker for tests\n"
    yield from paragraph(f"""
        `amqpcodec.testing` with `examples/client.py` as its client (`make bench-brokers`; CPython
        {found["python"]}, {found["cores"]} cores). The client publishes {found["messages"]:,} messages of
        256 B with three headers to one queue, with confirms, and consumes and acknowledges them at the same
        time. Both ends share one process and its event loop. Figures are the best of several, by CPU time.
    """)
    yield from verdict_table(broker_verdicts(found))
    yield ""
    yield from paragraph(f"""
        For orientation, beside RabbitMQ {found["rabbitmq"]}: the client publishes first, then consumes. Every
        body and header is compared in a round that is not timed. The brokers alternate in {found["rounds"]}
        rounds. RabbitMQ writes persistent messages to disk, and uses every core. The broker for tests keeps
        them in memory, and uses one. Figures are messages a second by the clock, of a machine that had other
        work as well.
    """)
    yield "| broker | published and confirmed | consumed and acknowledged |\n| --- | ---: | ---: |"
    for name, rates in found["brokers"].items():
        yield f"| {name} | {rates['publish']:,.0f} | {rates['consume']:,.0f} |"


def _gains(results: Results) -> Iterator[str]:
    found = results.clients
    if not found:
        return
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    yield from paragraph("""
        CPU time of a client's process for one message of 256 B: published, or consumed and acknowledged.
        Times are medians of the rounds. Ratios are medians of the ratios within a round, so they may differ
        from the ratio of the times beside them.
    """)
    yield "| client | | as it is | accelerated | with `loops` as well |\n| --- | --- | ---: | ---: | ---: |"
    for client, actions in found["clients"].items():
        for action, measured in actions.items():
            times, ratios = measured["microseconds"], measured["ratios"]
            cells = [f"{times[mode]:.0f} us, {ratios[mode]:.1f}x" if mode in times else "" for mode in MODES]
            yield f"| {client} | {action} | {times['stock']:.0f} us | {' | '.join(cells)} |"
    yield "\nClients on asyncio, beside the client as it is. The seam is `examples/seam.py`, in aiormq.\n"
    yield "| client | | uvloop alone | accelerated | both | by the seam |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for client, actions in found["clients"].items():
        for action, ratios in [(action, measured["ratios"]) for action, measured in actions.items()]:
            if "uvloop" in ratios:
                shown = " | ".join(f"{ratios[mode]:.1f}x" for mode in ASYNCIO_MODES)
                yield f"| {client} | {action} | {shown} |"
    yield ""
    yield from paragraph(f"Versions: {versions}.", "")


def _between_marks(text: str, lines: Iterable[str]) -> str:
    """A document with what stands between its marks made anew."""
    begin, end = "<!-- gains: written by benchmarks/report.py -->\n", "<!-- end of gains -->"
    before, _, rest = text.partition(begin)
    return f"{before}{begin}" + "".join(f"{line}\n" for line in lines) + end + rest.partition(end)[2]


def _columns(results: Results) -> Iterator[str]:
    if not results.columns:
        return
    yield "\n## Columns\n"
    yield from paragraph("""
        From octets to Arrow batches and back, in the compiled build (`make bench-columnar`). Streams are
        measured in CPU time, except with threads. Captures are measured in wall time, in a process that reads
        the file a second time.
    """)
    yield from verdict_table(column_verdicts(results))
    yield "\n| deliveries of 256 B, one of them | fixed | varied |\n| --- | ---: | ---: |"
    for item in ("messages", "messages, 4 columns", "rabbitmq-c"):
        cells = " | ".join(_time(results.columns[kind][item]) for kind in ("fixed", "varied"))
        yield f"| {item} | {cells} |"
    for item, way in (("encode, from columns", "columns"), ("encode, by objects", "objects")):
        cells = " | ".join(_time(results.columns[kind]["encode"][way]) for kind in ("fixed", "varied"))
        yield f"| {item} | {cells} |"
    yield from _beside_threads(results.columns)
    if results.captures:
        yield from _beside_writer(results.captures)
    if results.captures and results.captures["tshark"]:
        yield f"\ntshark -T fields read the same capture at {results.captures['tshark']:.1f} MB/s."


def _beside_threads(columns: dict[str, Any]) -> Iterator[str]:
    if not all("two processes" in figures for figures in columns.values()):
        return
    limits = " and ".join(f"{figures['two processes']:.2f}x ({kind})" for kind, figures in columns.items())
    yield ""
    yield from paragraph(f"""
        Two processes do {limits} as much as one: the limit of this machine. Threads that pass a decoder the
        whole stream come close. With 64 KiB at a time, a thread needs the lock of the interpreter every 25 us
        or so. One that finds it taken sleeps, and wakes up later than that: so do a quarter of the calls
        (`perf stat`: 23,000 context switches in 90,000 calls). In one run, two threads did 1.3x as much with
        256 KiB at a time, 1.6x with 1 MiB, and 1.7x with the whole stream. Chunks under 32 KiB are decoded
        without releasing the lock. With 4 KiB, releasing it took two threads four times as long.
    """)


def _beside_writer(captures: dict[str, Any]) -> Iterator[str]:
    if "pyarrow's writer" not in captures:
        return
    yield ""
    yield from paragraph(f"""
        pyarrow's writer alone takes the same batches at {captures["pyarrow's writer"]:.0f} MB/s of capture.
        That is the limit, since one thread writes a Parquet file; reading runs beside it. Of the writer's
        time, 40% is Zstandard, and 10% goes to columns without a value. It gains 9% without statistics, which
        readers look for, and 19% with Zstandard at level -1, whose files are 10% larger. It gains 5% at most
        from columns passed as dictionaries, and from other sizes of pages, batches and dictionaries.
    """)


def _profile(results: Results) -> Iterator[str]:
    if not results.profile:
        return
    yield "\n## Where the instructions go\n"
    yield from paragraph("""
        The work items with the hardest targets, in the compiled build, counted by callgrind
        (`make bench-profile`). `libpython` and `libc` make and free Python's objects, hash and insert keys,
        and run the few lines of Python that call the codec.
    """)
    for item, profile in results.profile.items():
        yield f"### {item}\n"
        shares = ", ".join(
            f"{name} {share:.0%}" for name, share in profile["objects"].items() if share > 0.01
        )
        yield from paragraph(f"{profile['total']} instructions: {shares}.")
        yield "| function | instructions | |\n| --- | ---: | ---: |"
        for function, count, share in profile["functions"]:
            yield f"| `{function}` | {count} | {share:.1%} |"
        yield ""


def _cell(figures: dict[str, float], name: str) -> str:
    figure, ours = figures.get(name), figures.get("amqpcodec")
    if figure is None:
        return ""
    ratio = f" ({figure / ours:.1f})" if ours is not None and name != "amqpcodec" else ""
    return f"{_time(figure)}{ratio}"


def _time(nanoseconds: float) -> str:
    return f"{nanoseconds:.0f} ns" if nanoseconds < 1000 else f"{nanoseconds / 1000:.2f} us"


if __name__ == "__main__":
    sys.exit(main())
