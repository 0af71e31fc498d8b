"""Work items of the guard, one after the other; run under callgrind by counting.py.

Usage: guard_work.py ITEM...

Prints the names of those that the package has.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache

import corpus
import guard_slow
from bench_consumers import CHUNK
from bench_forwarding import forwarding, publishes
from checks import drain
from peers.ours import Ours

BLOCK = 500  # operations in one stream, and calls in one go
BLOCKS = 6  # that are counted
MARK = "getppid"  # what is called before and after them: callgrind begins and ends a count there


def repeated(call: Callable[[], object]) -> Callable[[], None]:
    """A call that makes BLOCK calls."""

    def block() -> None:
        for _ in range(BLOCK):
            call()

    return block


def items(ours: Ours) -> dict[str, Callable[[], None]]:
    """Each item's name, and a call that does BLOCK operations of it."""
    fixed = corpus.delivery_stream(corpus.fixed(256, BLOCK))
    varied_contents = corpus.varied(256, BLOCK)
    varied = corpus.delivery_stream(varied_contents)
    chunks = {
        name: corpus.chunks(corpus.delivery_stream(contents), CHUNK)
        for name, contents in (("numbered", corpus.numbered(256, BLOCK)), ("varied", varied_contents))
    }
    acks = corpus.method_stream(corpus.acks(BLOCK))
    headers = corpus.header_stream(corpus.all_properties(BLOCK))
    table = corpus.tables()["10 mixed"]
    octets = corpus.encoded_table(table)
    varied_tables = [corpus.encoded_table(each) for each in corpus.varied_tables(BLOCK)]

    none, few, many = (publishes(ours, headers, BLOCK) for headers in (0, 3, 10))
    sent = ours.amqp.BasicProperties(timestamp=1_700_000_000)

    built = [ours.built(content) for content in varied_contents]
    prepared = cache(lambda: ours.prepared(varied_contents[0]))
    client, consumer = ours.client(), ours.client()
    small = corpus.varied(100, BLOCK)
    consumer_tags = sorted({content.consumer_tag for content in small})
    deliveries = corpus.chunks(corpus.delivery_stream(small), CHUNK)

    def publish() -> None:
        for content in varied_contents:
            ours.publish(content)

    def publish_built() -> None:
        for arguments in built:
            ours.amqp.encode_message(*arguments)

    def publish_prepared() -> None:
        encode = prepared()
        for content in varied_contents:
            encode(content)

    def send() -> None:
        for arguments in built:
            client.send_message(*arguments)
        client.data_to_send()

    def consume_and_ack() -> None:
        ours.open_channel(consumer, consumer_tags, no_ack=False)
        for chunk in deliveries:
            for event in consumer.receive_data(chunk):
                consumer.send(corpus.CHANNEL, ours.amqp.BasicAck(event.method.delivery_tag))
            consumer.data_to_send()

    return {
        "consume and ack, Connection, 100 B varied": consume_and_ack,
        "consume deliveries 256 B numbered": lambda: ours.consume(chunks["numbered"]),
        "consume deliveries 256 B varied": lambda: ours.consume(chunks["varied"]),
        "consume messages 256 B numbered": lambda: ours.consume_messages(chunks["numbered"]),
        "consume messages 256 B varied": lambda: ours.consume_messages(chunks["varied"]),
        "decode delivery 256 B fixed": lambda: drain(ours.decode(fixed)),
        "decode delivery 256 B varied": lambda: drain(ours.decode(varied)),
        "decode delivery 256 B raw tables": lambda: drain(ours.decode_raw(varied)),
        "message 256 B varied": lambda: drain(ours.messages(varied)),
        "forward, 0 headers, raw tables": forwarding(ours, none, "raw tables", len),
        "forward, 3 headers, raw tables": forwarding(ours, few, "raw tables", len),
        "forward, 10 headers, raw tables": forwarding(ours, many, "raw tables", len),
        "forward, 0 headers, dicts": forwarding(ours, none, "dicts", len),
        "forward, 0 headers, raw": forwarding(ours, none, "raw properties", len),
        "forward, 3 headers, dicts": forwarding(ours, few, "dicts", len),
        "forward, 3 headers, raw": forwarding(ours, few, "raw properties", len),
        "forward, 10 headers, dicts": forwarding(ours, many, "dicts", len),
        "forward, 10 headers, raw": forwarding(ours, many, "raw properties", len),
        "decode basic.ack": lambda: drain(ours.decode(acks)),
        "decode header 14 properties": lambda: drain(ours.decode(headers)),
        "decode table 10 mixed": repeated(lambda: ours.decode_table(octets)),
        "decode table 10 mixed, varied": lambda: drain(map(ours.decode_table, varied_tables)),
        "make a FrameDecoder": repeated(ours.amqp.FrameDecoder),
        "encode publish 256 B varied": publish,
        "encode publish 256 B varied, built before": publish_built,
        "encode publish 256 B varied, prepared": publish_prepared,
        "encode publishes 256 B varied, in pieces": lambda: drain(ours.amqp.encode_messages(built)),
        "send_message 256 B varied": send,
        "encode basic.ack": repeated(lambda: ours.ack(7, False)),
        "encode basic.ack, tag of 64 bits": repeated(lambda: ours.ack((1 << 63) + 5, False)),
        "encode header, time as a number": repeated(lambda: ours.amqp.encode_header(1, sent, 0)),
        "encode table 10 mixed": repeated(lambda: ours.encode_table(table)),
        **guard_slow.items(ours, BLOCK),
    }


def main(chosen: list[str]) -> None:
    """Do each item: BLOCK operations to get warm, then those that are counted."""
    works = items(Ours("amqpcodec", "c"))
    for name in chosen:
        work = works[name]
        try:
            work()
        except AttributeError:
            continue  # an earlier revision lacks it
        os.getppid()
        for _ in range(BLOCKS):
            work()
        os.getppid()
        print(name)


if __name__ == "__main__":
    main(sys.argv[1:])
