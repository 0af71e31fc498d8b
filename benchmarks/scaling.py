"""How much more two threads do than one, on an interpreter without the global lock.

Each thread has a core, a decoder and records of its own. Literals and the module's functions are shared, as
in a program. Rounds of one thread and of two alternate, and the best of each counts, since other work on the
machine only ever adds time. Fails if a work item stays below TARGET.

    python benchmarks/scaling.py [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable

from amqpcodec import rabbitmq as amqp

TARGET = 1.7
CALLS = 50_000
Work = Callable[[int], None]


def _repeated(call: Callable[[], object]) -> Work:
    def work(calls: int) -> None:
        for _ in range(calls):
            call()

    return work


def _method() -> object:
    return amqp.Basic.Publish(exchange="orders", routing_key="eu.created")


def _properties() -> object:
    return amqp.BasicProperties(content_type="application/json", delivery_mode=2, headers={"attempt": 3})


def encode_method() -> Work:
    """One method, by the function of the module."""
    method = _method()
    return _repeated(lambda: amqp.encode_method(1, method))


def encode_ack() -> Work:
    """A short method, likewise."""
    method = amqp.Basic.Ack(7)
    return _repeated(lambda: amqp.encode_method(1, method))


def encode_ack_by_its_own() -> Work:
    """Encode likewise, by an `Encoder` that each thread has made."""
    encoder, method = amqp.Encoder(), amqp.Basic.Ack(7)
    return _repeated(lambda: encoder.encode_method(1, method))


def encode_prepared() -> Work:
    """A prepared message that each thread has made."""
    encode = amqp.prepare_message(1, _method(), _properties()).encode
    key = "".join(
        ["eu.", "changed"]
    )  # a literal lies beside others, whose counts threads take from each other
    return _repeated(lambda: encode(b'{"id": 7}', routing_key=key))


def encode_message() -> Work:
    """A method with its content, by the function of the module."""
    method, properties = _method(), _properties()
    return _repeated(lambda: amqp.encode_message(1, method, properties, b'{"id": 7}'))


def encoder_of_its_own() -> Work:
    """Encode likewise, by an `Encoder` that each thread has made."""
    encoder, method, properties = amqp.Encoder(), _method(), _properties()
    return _repeated(lambda: encoder.encode_message(1, method, properties, b'{"id": 7}'))


SHARED = amqp.Encoder()


def shared_encoder_bound() -> Work:
    """The same by one `Encoder` for all threads, of which each looked its function up once."""
    encode, method, properties = SHARED.encode_message, _method(), _properties()
    return _repeated(lambda: encode(1, method, properties, b'{"id": 7}'))


def encode_table() -> Work:
    """A field table."""
    table = {"attempt": 3, "source": "eu"}
    return _repeated(lambda: amqp.encode_table(table))


def decode_table() -> Work:
    """The same, read."""
    octets = amqp.encode_table({"attempt": 3, "source": "eu"})
    return _repeated(lambda: amqp.decode_table(octets))


def decode_deliveries() -> Work:
    """Frames of deliveries, fifty at a time."""
    decoder = amqp.FrameDecoder()
    deliver = amqp.Basic.Deliver(
        consumer_tag="c1", delivery_tag=1, exchange="orders", routing_key="eu.created"
    )
    octets = amqp.encode_message(1, deliver, _properties(), b"x" * 100) * 50

    def work(calls: int) -> None:
        for _ in range(calls // 150):
            for frame in decoder.feed(octets):
                frame.payload  # noqa: B018 # reading an attribute is part of the work

    return work


ITEMS = (
    encode_method, encode_ack, encode_ack_by_its_own, encode_prepared, encode_message, encoder_of_its_own,
    shared_encoder_bound, encode_table, decode_table, decode_deliveries,
)  # fmt: skip


def seconds(item: Callable[[], Work], threads: int) -> float:
    """Time from the start of the first of some threads to the end of the last."""
    cores = sorted(os.sched_getaffinity(0))
    start = threading.Barrier(threads)
    spans: list[tuple[float, float]] = []

    def run(core: int) -> None:
        os.sched_setaffinity(threading.get_native_id(), {core})
        work = item()  # what it works on lies in the memory of its own thread
        work(CALLS // 20)
        start.wait()
        begun = time.perf_counter()
        work(CALLS)
        spans.append((begun, time.perf_counter()))

    running = [threading.Thread(target=run, args=(cores[number],)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return max(end for _, end in spans) - min(begun for begun, _ in spans)


def main() -> int:
    """Measure, print a table of Markdown; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        print("this interpreter has a global lock: threads take turns, there is nothing to measure")
        return 0
    missed = False
    print("| work | one thread | two threads do |\n| --- | --- | --- |")
    for item in ITEMS:
        times = [(seconds(item, 1), seconds(item, 2)) for _ in range(rounds)]
        one, two = min(one for one, _ in times), min(two for _, two in times)
        missed |= 2 * one / two < TARGET
        print(f"| {item.__name__} | {one / CALLS * 1e9:.0f} ns | {2 * one / two:.2f} times as much |")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
