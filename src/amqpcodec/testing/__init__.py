"""For tests of programs that use AMQP: a broker in memory, which answers as RabbitMQ, with faults on demand.

    async with Broker() as broker:
        channel = await (await aio_pika.connect(broker.url)).channel()
        ...
        broker.assert_published(routing_key="orders", settled="acknowledged")

`running_broker` has it on a thread, for clients that block. pytest has the fixtures `amqp_broker` and
`amqp_broker_session` wherever this package is installed. What the broker lacks is refused with 540
not-implemented on the channel.
"""

from __future__ import annotations

from . import faults
from .broker import Broker
from .clock import Clock
from .faults import Fault, Faults
from .messages import Message
from .records import BindingState, ConnectionState, ConsumerState, ExchangeState, QueueState
from .running import running_broker

__all__ = [
    "BindingState",
    "Broker",
    "Clock",
    "ConnectionState",
    "ConsumerState",
    "ExchangeState",
    "Fault",
    "Faults",
    "Message",
    "QueueState",
    "faults",
    "running_broker",
]
