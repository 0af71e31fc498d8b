"""Times the items of `make bench-against`, in a process of their own.

The process reads names of items from its input, a line each, and answers each with a line of JSON: the
seconds of an operation, and what the call returned; or why the package that it imports has no such item.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import corpus
from bench_consumers import CHUNK
from bench_forwarding import forwarding, publishes
from captures import capture
from peers.ours import Ours

from amqpcodec.cli import main as run_command
from amqpcodec.connection import MessageReceived

COUNT = 4000  # deliveries in a stream
PURE_COUNT = 500
SECONDS = 0.15  # that an item is timed for, at least
CALLS = 3  # likewise
CAPTURE = (2, 20)  # megabytes, connections
FRAME_COLUMNS = ("ts", "channel", "name", "size", "direction")
MESSAGE_COLUMNS = ("ts", "exchange", "routing_key", "properties.message_id", "body")

Call = Callable[[], object]


class Item(NamedTuple):
    """How many operations a call is, and what makes the call."""

    operations: int
    make: Callable[[], Call]
    share_of: str = ""  # another item, which does as much in the usual way


def compiled() -> Ours:
    """Return the compiled build."""
    return Ours("amqpcodec", "c")


def pure() -> Ours:
    """Return the pure build."""
    return Ours("amqpcodec pure", "py")


def decoding(
    build: Callable[[], Ours], decoder: str, contents: Iterable[corpus.Content], **options: Any
) -> Call:
    """Return a call that loops over frames or messages, fed in chunks, and counts them."""
    chunks = corpus.chunks(corpus.delivery_stream(contents), CHUNK)
    make = getattr(build().amqp, decoder)

    def decode() -> int:
        feed, count = make(**options).feed, 0
        for chunk in chunks:
            for _ in feed(chunk):
                count += 1
        return count

    return decode


def looking_up(read: Callable[[Any], int], **options: Any) -> Call:
    """Return a call that reads something of the ten headers of each message."""
    amqp, chunks = compiled().amqp, publishes(compiled(), 10)

    def look_up() -> int:
        feed, total = amqp.MessageDecoder(**options).feed, 0
        for chunk in chunks:
            for message in feed(chunk):
                total += read(message.properties)
        return total

    return look_up


def one_of_headers(properties: Any) -> int:
    """Return one of the headers."""
    number: int = properties.headers.get("x-header-4")
    return number


def one_header(properties: Any) -> int:
    """Return the same of raw properties."""
    number: int = properties.header("x-header-4")
    return number


def all_headers(properties: Any) -> int:
    """Return how many headers there are, which decodes all."""
    return len(properties.headers)


def forwarding_octets(headers: int, way: str) -> Call:
    """Return a call that passes publishes on as deliveries, and says how many octets they were."""
    chunks = publishes(compiled(), headers)
    total: list[int] = []
    forward = forwarding(compiled(), chunks, way, lambda parts: total.append(sum(map(len, parts))))

    def call() -> int:
        total.clear()
        forward()
        return sum(total)

    return call


def properties_of(amqp: Any, content: corpus.Content) -> Any:
    """Return the properties of a content."""
    return amqp.BasicProperties(
        content_type=content.content_type,
        delivery_mode=content.delivery_mode,
        headers=content.headers,
        correlation_id=content.correlation_id,
        timestamp=content.moment,
        message_id=content.message_id,
    )


def made_messages(amqp: Any, count: int) -> list[tuple[Any, Any, bytes]]:
    """Return methods, properties and bodies of publishes."""
    return [
        (
            amqp.BasicPublish(exchange=each.exchange, routing_key=each.routing_key),
            properties_of(amqp, each),
            each.body,
        )
        for each in corpus.traced(count)
    ]


def encoding(build: Callable[[], Ours], count: int) -> Call:
    """Return a call that encodes messages that were made before."""
    amqp = build().amqp
    encode = amqp.encode_message
    messages = made_messages(amqp, count)
    return lambda: sum([len(encode(1, method, properties, body)) for method, properties, body in messages])


def encoding_many() -> Call:
    """Return a call that encodes messages that were made before, all at once."""
    amqp = compiled().amqp
    messages = [(1, *each) for each in made_messages(amqp, COUNT)]
    return lambda: sum([len(piece) for piece in amqp.encode_messages(messages)])


def encoding_prepared() -> Call:
    """Return a call that encodes messages of which one was prepared."""
    amqp, contents = compiled().amqp, corpus.traced(COUNT)
    method, properties, _ = made_messages(amqp, 1)[0]
    prepared = amqp.prepare_message(1, method, properties)

    def encode() -> int:
        changed, total = prepared.encode, 0
        for each in contents:
            octets = changed(
                each.body,
                exchange=each.exchange,
                routing_key=each.routing_key,
                content_type=each.content_type,
                delivery_mode=each.delivery_mode,
                headers=each.headers,
                correlation_id=each.correlation_id,
                timestamp=each.moment,
                message_id=each.message_id,
            )
            total += len(octets)
        return total

    return encode


def making() -> Call:
    """Return a call that makes methods and properties of publishes, and encodes them."""
    amqp, contents = compiled().amqp, corpus.traced(COUNT)

    def make() -> int:
        encode, publish, total = amqp.encode_message, amqp.BasicPublish, 0
        for each in contents:
            method = publish(exchange=each.exchange, routing_key=each.routing_key)
            total += len(encode(1, method, properties_of(amqp, each), each.body))
        return total

    return make


def sending() -> Call:
    """Return a call that sends messages through a connection."""
    amqp, client = compiled().amqp, compiled().client(())
    messages = made_messages(amqp, COUNT)

    def send() -> int:
        send_message = client.send_message
        for method, properties, body in messages:
            send_message(1, method, properties, body)
        return len(client.data_to_send())

    return send


def acking(encoder: str) -> Call:
    """Return a call that makes acks and encodes them, by a function or by an encoder of its own."""
    amqp = compiled().amqp
    encode, ack = amqp.encode_method if not encoder else getattr(amqp, encoder)().encode_method, amqp.BasicAck
    return lambda: sum([len(encode(1, ack(tag))) for tag in range(1, COUNT + 1)])


def consuming() -> Call:
    """Return a call in which a connection receives deliveries and acks each."""
    ours, contents = compiled(), corpus.varied(100, COUNT)
    amqp, client = ours.amqp, ours.client()
    consumer_tags = sorted({each.consumer_tag for each in contents})
    chunks = corpus.chunks(corpus.delivery_stream(contents), CHUNK)

    def consume() -> int:
        ours.open_channel(client, consumer_tags, no_ack=False)
        ack, send, total = amqp.BasicAck, client.send, 0
        for chunk in chunks:
            for event in client.receive_data(chunk):
                if type(event) is MessageReceived:
                    send(1, ack(event.method.delivery_tag))
            total += len(client.data_to_send())
        return total

    return consume


def command(*options: str) -> Call:
    """Return a call of the command on a capture, in this process."""
    path, _ = capture(*CAPTURE)

    def decode() -> int:
        out = io.TextIOWrapper(io.BytesIO(), "utf-8")
        with contextlib.redirect_stdout(out):
            run_command(["decode", *options, str(path)])
        out.flush()
        return len(out.buffer.getvalue())

    return decode


def columns(table: str, names: tuple[str, ...] | None = None) -> Call:
    """Return a call that reads columns of a capture, by default all but optional ones."""
    from amqpcodec import arrow  # not every environment has pyarrow

    path, _ = capture(*CAPTURE)
    return lambda: sum(batch.num_rows for batch in arrow.read_capture(path, table, columns=names))


def items() -> dict[str, Item]:
    """Return every item by its name."""
    return {
        "frames, traced": Item(COUNT, lambda: decoding(compiled, "FrameDecoder", corpus.traced(COUNT))),
        "frames, numbered": Item(COUNT, lambda: decoding(compiled, "FrameDecoder", corpus.renumbered(COUNT))),
        "messages, traced": Item(COUNT, lambda: decoding(compiled, "MessageDecoder", corpus.traced(COUNT))),
        "messages, numbered": Item(
            COUNT, lambda: decoding(compiled, "MessageDecoder", corpus.renumbered(COUNT))
        ),
        "messages, traced, raw tables": Item(
            COUNT, lambda: decoding(compiled, "MessageDecoder", corpus.traced(COUNT), tables="raw")
        ),
        "messages, traced, raw properties": Item(
            COUNT, lambda: decoding(compiled, "MessageDecoder", corpus.traced(COUNT), properties="raw")
        ),
        "messages, 1 header of 10 read": Item(COUNT // 2, lambda: looking_up(one_of_headers)),
        "messages, 1 header of 10 read, raw tables": Item(
            COUNT // 2, lambda: looking_up(one_of_headers, tables="raw"), "messages, 1 header of 10 read"
        ),
        "messages, 10 headers of 10 read, raw tables": Item(
            COUNT // 2, lambda: looking_up(all_headers, tables="raw")
        ),
        "messages, 1 header of 10 read, raw properties": Item(
            COUNT // 2, lambda: looking_up(one_header, properties="raw"), "messages, 1 header of 10 read"
        ),
        "messages, 10 headers of 10 read, raw properties": Item(
            COUNT // 2, lambda: looking_up(all_headers, properties="raw")
        ),
        "Connection, deliveries and acks": Item(COUNT, consuming),
        **{
            f"forward, {headers} headers, {way}": Item(
                COUNT // 2, partial(forwarding_octets, headers, way), "" if way == "dicts" else dicts
            )
            for headers in (0, 3, 10)
            for dicts in [f"forward, {headers} headers, dicts"]
            for way in ("dicts", "raw properties")
        },
        "encode_message, traced": Item(COUNT, lambda: encoding(compiled, COUNT)),
        "encode_messages, traced": Item(COUNT, encoding_many, "encode_message, traced"),
        "make and encode messages, traced": Item(COUNT, making),
        "prepared message, traced": Item(COUNT, encoding_prepared, "make and encode messages, traced"),
        "make and encode acks": Item(COUNT, lambda: acking("")),
        "make and encode acks, own Encoder": Item(COUNT, lambda: acking("Encoder")),
        "Connection.send_message, traced": Item(COUNT, sending),
        "pure frames, traced": Item(
            PURE_COUNT, lambda: decoding(pure, "FrameDecoder", corpus.traced(PURE_COUNT))
        ),
        "pure messages, traced": Item(
            PURE_COUNT,
            lambda: decoding(pure, "MessageDecoder", corpus.traced(PURE_COUNT)),
            "pure frames, traced",
        ),
        "pure messages, numbered": Item(
            PURE_COUNT, lambda: decoding(pure, "MessageDecoder", corpus.renumbered(PURE_COUNT))
        ),
        "pure encode_message, traced": Item(PURE_COUNT, lambda: encoding(pure, PURE_COUNT)),
        "amqpcodec decode, KB": Item(1000 * CAPTURE[0], command),
        "amqpcodec decode --messages, KB": Item(1000 * CAPTURE[0], lambda: command("--messages")),
        "amqpcodec decode --count, KB": Item(1000 * CAPTURE[0], lambda: command("--count")),
        "columns of frames, KB": Item(1000 * CAPTURE[0], lambda: columns("frames", FRAME_COLUMNS)),
        "columns of messages, KB": Item(1000 * CAPTURE[0], lambda: columns("messages", MESSAGE_COLUMNS)),
        "all columns of messages, KB": Item(1000 * CAPTURE[0], lambda: columns("messages")),
        "all columns of deliveries, KB": Item(
            1000 * CAPTURE[0], lambda: columns("deliveries"), "all columns of messages, KB"
        ),
    }


def timed(item: Item) -> dict[str, Any]:
    """Return the median of the seconds of an operation, CPU time, and what the call returned."""
    call = item.make()
    found = call()
    gc.collect()
    gc.freeze()
    times: list[float] = []
    while len(times) < CALLS or sum(times) < SECONDS:
        begin = process_time()
        call()
        times.append(process_time() - begin)
    gc.unfreeze()
    return {"seconds": median(times) / item.operations, "found": found}


def answer(item: Item) -> dict[str, Any]:
    """Return what was measured, or why the package has no such item."""
    try:
        return timed(item)
    except (AttributeError, ImportError, LookupError, TypeError, ValueError) as reason:
        return {"lacks": f"{type(reason).__name__}: {reason}"}


def main() -> None:
    """Answer until there is nothing more to answer; what an item prints is no answer."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    every = items()
    for line in sys.stdin:
        print(json.dumps(answer(every[line.rstrip("\n")])), file=answers, flush=True)


if __name__ == "__main__":
    main()
