"""Two captures so small that every number of `amqpcodec stats` can be found by hand; one is damaged.

A packet comes 100 µs behind the one before of its connection. What one end sends is a packet with its octets,
and one with the acknowledgement of the other end. So an answer that is sent next comes 200 µs later.
"""

from __future__ import annotations

from amqpcodec import rabbitmq as amqp
from support import make_capture as make
from support.make_capture import CLIENT, SERVER
from support.troubled import Talk, _message


def whole() -> bytes:
    """A publisher that closes, and a consumer that has not when the recording ends; nanoseconds."""
    truth = make.Truth()
    _publisher(Talk(truth, 1).opened())
    _consumer(Talk(truth, 2).opened())
    return make.pcap(sorted(truth.packets, key=lambda packet: packet.time_ns), nanos=True)


def damaged() -> bytes:
    """The same in microseconds, but nobody closes, the second message is missing, the last block is cut."""
    truth = make.Truth()
    _publisher(Talk(truth, 1).opened(), closes=False)
    _consumer(Talk(truth, 2).opened())
    packets = sorted(truth.packets, key=lambda packet: packet.time_ns)
    second = [packet for packet in packets if b"second" in packet.octets]
    assert len(second) == 1
    packets.remove(second[0])
    return make.pcapng(packets)[:-40]


def _publisher(talk: Talk, closes: bool = True) -> None:
    """Three messages, of which one is confirmed at once, one is refused late, and one is never answered."""
    talk.client(amqp.Confirm.Select())
    talk.server(amqp.Confirm.SelectOk())
    for tag, body in enumerate((b"first", b"the second", b"and one more"), 1):
        talk.send(CLIENT, *_message(amqp.Basic.Publish(exchange="", routing_key="orders"), body))
        if tag == 2:
            talk.wait(2)
            talk.server(amqp.Basic.Nack(delivery_tag=2))
        elif tag == 1:
            talk.server(amqp.Basic.Ack(delivery_tag=1))
    if not closes:
        return
    talk.client(amqp.Channel.Close(reply_code=200, reply_text="done"))
    talk.server(amqp.Channel.CloseOk())
    talk.goodbye()


def _consumer(talk: Talk) -> None:
    """Three deliveries, the first one again; two are acknowledged at once, one waits."""
    talk.declare("work", 7)
    talk.client(amqp.Basic.Consume(queue="work", consumer_tag="c"))
    talk.server(amqp.Basic.ConsumeOk(consumer_tag="c"))
    for tag, body in enumerate((b"again", b"once", b"unanswered"), 1):
        deliver = amqp.Basic.Deliver(
            consumer_tag="c", delivery_tag=tag, redelivered=tag == 1, exchange="shop", routing_key="a.b"
        )
        talk.send(SERVER, *_message(deliver, body))
        if tag < 3:
            talk.client(amqp.Basic.Ack(delivery_tag=tag))
    talk.wait(4)
    talk.declare("work", 9)
