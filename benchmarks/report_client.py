"""The report's section on `aio.Client`."""

from __future__ import annotations

from collections.abc import Iterator

from prose import paragraph, verdict_table
from results import Results
from targets import client_layer_verdicts

LABELS = {
    "amqpcodec.aio": "`aio.Client`: 128 tasks that await `publish`; `async for`",
    "amqpcodec.aio, one task": "`aio.Client`: one task that keeps the futures of `publish_soon`",
    "amqpcodec.aio on uvloop": "`aio.Client` on uvloop, with 128 tasks",
    "floor of asyncio": "the floor: prepared octets, and 128 tasks that await a future for each",
    "aio-pika, drop-in": '`aio-pika` with `install("pamqp")`',
    "pika select": "pika's `SelectConnection`, callbacks",
    "Node amqplib": "Node's amqplib, callbacks",
    "librabbitmq": "rabbitmq-c; C",
}


def client_section(results: Results) -> Iterator[str]:
    """Yield the section about `aio.Client`."""
    found = results.client_layer
    if not found:
        return
    yield "\n## The client\n"
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    yield from paragraph(f"""
        `aio.Client` beside other clients at a RabbitMQ on the same machine (`make bench-client-layer`;
        CPython {found["python"]}, {found["cores"]} cores). Each publishes {found["messages"]:,} messages of
        256 B with five properties and three headers, confirmed, with at most 128 outstanding. Then it
        consumes and acknowledges them, with a prefetch of 200, and compares body, headers and id of each.
        Every turn is a process of its own. Times are its CPU time, of user and system, for one message.
        Clients take turns in
        {found["rounds"]} rounds. Figures are medians; ratios are medians of those within a round. Versions:
        {versions}.
    """)
    yield "| client | publish | beside ours | consume | beside ours |\n| --- | ---: | ---: | ---: | ---: |"
    for name, actions in found["clients"].items():
        cells = " | ".join(
            f"{figures['microseconds']:.1f} us | {figures['ratio']:.2f}x" for figures in actions.values()
        )
        yield f"| {LABELS.get(name, name)} | {cells} |"
    for name, reason in found["missing"].items():
        yield f"| {LABELS.get(name, name)} | missing: {reason} | | | |"
    yield ""
    same = found["clients"]["amqpcodec.aio, one task"]["consume"]
    yield from paragraph(f"""
        The first two consume by the same code. Their ratios in a round, {same["least"]:.2f} to
        {same["most"]:.2f} with a median of {same["ratio"]:.2f}, show how far the run can be trusted: other
        work was on both cores.
    """)
    yield from verdict_table(client_layer_verdicts(results))
    yield ""
    yield from paragraph("""
        The floor writes octets that are made before, once a turn of the loop. Of what comes, it decodes the
        tags of confirms; of deliveries it counts the octets, and acknowledges those of each read together,
        by prepared octets. rabbitmq-c and the other libraries acknowledge each message by itself;
        `aio.Client` gathers the acknowledgements of a turn. Node's figures include the compilation by its
        JIT, which a longer run makes up for: in one round of 60,000 messages Node took 2.83 times our time
        to publish, and 2.28 times to consume. That is below the target for consuming, so it is met by short
        runs alone.
    """)
