"""What the tests of pickles pickle; as a program, one build's half of an exchange.

``python -m support.pickles dump PROTOCOL`` writes a pickle to standard output, ``load`` reads one from
standard input and writes what it held. The build is the one that AMQPCODEC_IMPL names.
"""

from __future__ import annotations

import pickle
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import amqpcodec
from amqpcodec import FieldValue, InlineContent, RawTable, ReferenceContent

from .outcomes import describe

HEADERS = {
    "text": "é",
    "number": -5,
    "list": [1, {"deep": None}],
    "when": datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC),
    "amount": Decimal("1.50"),
    "tagged": FieldValue("u", 40000),
}


def samples() -> list[Any]:
    """Records of every dialect, and one of each class that all dialects share."""
    values: list[Any] = []
    for name in amqpcodec.DIALECTS:
        module = amqpcodec.dialect(name)
        properties = module.BasicProperties(message_id="id", headers=HEADERS, priority=9)
        deliver = module.Basic.Deliver("tag", 5, True, "exchange", "key")
        values += [deliver, properties, amqpcodec.Message(1, deliver, properties, b"body", False)]
    rabbitmq: Any = amqpcodec.dialect("rabbitmq-0-9-1")
    transfer: Any = amqpcodec.dialect("amqp-0-9").Message.Transfer
    values += [
        rabbitmq.Queue.Declare("queue", arguments=RawTable(b"\x01kI\0\0\0\x05"), reserved_1=7),
        transfer(body=InlineContent(b"inline")),
        transfer(body=ReferenceContent(b"reference")),
        amqpcodec.Frame(1, 2, rabbitmq.Basic.Ack(3)),
        amqpcodec.Frame(2, 2, amqpcodec.ContentHeader(rabbitmq.BasicProperties(), 7, 1)),
        amqpcodec.Frame(8, 0, amqpcodec.Heartbeat()),
        amqpcodec.OpaquePayload(b"octets"),
        amqpcodec.ProtocolHeader(b"AMQP\0\0\x09\1"),
    ]
    return values


def main(arguments: list[str]) -> None:
    if arguments[0] == "dump":
        sys.stdout.buffer.write(pickle.dumps(samples(), protocol=int(arguments[1])))
        return
    values = pickle.load(sys.stdin.buffer)
    builds = {type(value).__module__.rpartition("_")[2] for value in values}
    assert builds == {amqpcodec.IMPL}, builds
    sys.stdout.write(repr(describe(values)))


if __name__ == "__main__":
    main(sys.argv[1:])
