"""A capture with deliveries that take a while and requests with replies, and what is to be found in it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from amqpcodec import rabbitmq as amqp
from support import make_capture as make
from support.make_capture import CLIENT, SERVER
from support.troubled import Talk

MESSAGES = 150  # of each queue
STEP_US = 100  # between packets


def _send(talk: Talk, side: int, method: Any, **properties: Any) -> None:
    octets = amqp.encode_message(1, method, amqp.BasicProperties(**properties), b"body", frame_max=4096)
    talk.send(side, *make.split(octets))


def capture() -> bytes:
    """Return two queues whose messages are acknowledged after a while, and requests with replies."""
    rng = random.Random(7)
    talk = Talk(make.Truth(), 0).opened()
    for queue in ("orders", "mail"):
        talk.client(amqp.Basic.Consume(queue=queue, consumer_tag=queue, no_wait=True))
    for tag in range(1, 2 * MESSAGES + 1):
        queue = ("orders", "mail")[tag % 2]
        _send(talk, SERVER, amqp.Basic.Deliver(queue, tag, False, "shop", "a.b"))
        talk.wait(rng.expovariate(100) * (1 + tag % 2))
        talk.client(amqp.Basic.Ack(delivery_tag=tag))
    for number in range(3):
        names = {"correlation_id": f"request {number}"}
        request = amqp.Basic.Publish(exchange="rpc", routing_key="price")
        _send(talk, CLIENT, request, reply_to="amq.gen-1", **names)
        talk.wait(number)
        _send(talk, CLIENT, amqp.Basic.Publish(exchange="", routing_key="amq.gen-1"), **names)
    talk.goodbye()
    return make.pcap(talk.truth.packets, nanos=True)


REPLIES = {f"request {number}": (number * 10**6 + 2 * STEP_US) * 1000 for number in range(3)}


def as_stats_has_them(found: dict[str, int], path: Path) -> None:
    """Compare percentiles with those of a summary, which are at most 0.8 % larger."""
    from amqpcodec.stats import Collector

    collector = Collector()
    collector.add(str(path), "trace")
    by_queue = {party.keys["queue"]: party for party in collector.summary().by_queue}
    assert found.keys() == by_queue.keys() == {"orders", "mail"}
    for queue, p99_us in found.items():
        party = by_queue[queue]
        assert party.messages == MESSAGES
        assert party.p99_ns is not None
        assert p99_us <= party.p99_ns / 1000 <= (p99_us + 1) * 1.008
    assert found["mail"] > found["orders"]
