"""``python -m interop.record_examples``: sessions with Broker-J, in `examples/`."""

from __future__ import annotations

from pathlib import Path

import brokerj
from support.implementation import Implementation

from amqpcodec.connection import ChannelClosed, MessageReceived
from amqpcodec.record import Recorder

from .talk import Talk

# Of the others there are recordings of clients that others wrote.
DIALECTS = ("qpid-0-8", "amqp-0-9", "amqp-0-9-1")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def session(client: Talk) -> None:
    """Declare, publish, consume, get, commit, and ask for what there is not."""
    channel, amqp = client.channel(), client.amqp
    queue = client.queue(channel, queue="orders")
    client.call(channel, amqp.Exchange.Declare(exchange="shop", type="topic"))
    client.call(channel, amqp.Queue.Bind(queue=queue, exchange="shop", routing_key="order.#"))
    for number in range(3):
        client.publish(
            channel, b"order %d" % number, {"n": number, "to": "eu"}, exchange="shop", routing_key="order.new"
        )
    client.publish(channel, b"lost", exchange="shop", routing_key="refund", mandatory=True)
    client.event(MessageReceived)
    first = client.get(channel, queue)
    client.connection.send(channel, amqp.Basic.Ack(delivery_tag=first.method.delivery_tag))
    tag = client.call(channel, amqp.Basic.Consume(queue=queue)).method.consumer_tag
    for _ in range(2):
        delivered = client.event(MessageReceived)
    client.connection.send(channel, amqp.Basic.Ack(delivered.method.delivery_tag, multiple=True))
    client.call(channel, amqp.Basic.Cancel(consumer_tag=tag))
    client.call(channel, amqp.Tx.Select())
    client.publish(channel, b"order 3", exchange="shop", routing_key="order.new")
    client.call(channel, amqp.Tx.Commit())
    client.call(channel, amqp.Exchange.Delete(exchange="shop"))
    client.call(channel, amqp.Queue.Declare(queue="nonesuch", passive=True), ChannelClosed)


def main() -> None:
    """Record them."""
    with brokerj.started() as broker:
        for dialect in DIALECTS:
            with (
                Recorder(EXAMPLES / f"brokerj-{dialect.removeprefix('amqp-')}.pcap") as recorder,
                Talk(Implementation("c"), dialect, broker.url, recorder, heartbeat=0) as client,
            ):
                session(client)


if __name__ == "__main__":
    main()
