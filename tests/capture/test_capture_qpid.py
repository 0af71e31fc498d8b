"""Brokers of Qpid say so in connection.start, and speak methods of their own in every version."""

from __future__ import annotations

import io
from pathlib import Path
from types import ModuleType

import pytest
from support import make_capture as make

from amqpcodec import amqp08, amqp09, amqp091, capture, qpid08
from amqpcodec.capture import CapturedFrame

CLIENT, SERVER = make.CLIENT, make.SERVER
# What Broker-J and its client of JMS say in 0-8, 0-9 and 0-9-1 alike.
BOUND = qpid08.Exchange.Bound("amq.direct", "key", "queue"), qpid08.Exchange.BoundOk(0, "")
ROOT = Path(__file__).parents[2]
EXAMPLES = {"qpid-0-8": "qpid-0-8", "0-9": "amqp-0-9", "0-9-1": "rabbitmq-0-9-1"}
READ_AS = {amqp08: "qpid-0-8", amqp09: "amqp-0-9", amqp091: "rabbitmq-0-9-1"}


def talk(old: ModuleType, product: object) -> bytes:
    """A capture of a connection to a broker of that name."""
    version = (8, 0) if old is amqp08 else (0, 9)
    truth = make.Truth()
    each = make.Talk(truth, 0, (1, 1))
    each.open()
    each.send(CLIENT, old.protocol_header())
    start = old.Connection.Start(*version, {"product": product}, b"PLAIN", b"en_US")
    each.send(SERVER, old.encode_method(0, start))
    for asked, answered in (BOUND, (qpid08.Basic.Recover(True), qpid08.Basic.RecoverOk())):
        each.send(CLIENT, qpid08.encode_method(1, asked))
        each.send(SERVER, qpid08.encode_method(1, answered))
    if old is amqp08:
        arguments = {"x-filter-jms-selector": "a = 1", "yes": True}
        each.send(CLIENT, qpid08.encode_method(1, qpid08.Basic.Consume(queue="q", arguments=arguments)))
    each.close()
    return make.pcap(truth.packets)


@pytest.mark.parametrize("product", ["Apache Qpid Broker-J Core", "qpid"])
@pytest.mark.parametrize("old", READ_AS, ids=lambda module: module.DIALECT.name)
def test_what_a_broker_of_qpid_and_its_clients_say_is_read(old: ModuleType, product: str) -> None:
    items = list(capture.read_frames(io.BytesIO(talk(old, product))))
    assert [item for item in items if not isinstance(item, CapturedFrame)] == []
    assert items[-1].connection.dialect == READ_AS[old]
    assert [item.frame.payload for item in items if item.octets[7:10] == b"\0\x28\0"] == [*BOUND]


@pytest.mark.parametrize(("name", "dialect"), EXAMPLES.items())
def test_the_sessions_with_brokerj_are_read_as_they_were(name: str, dialect: str) -> None:
    items = list(capture.read_frames(ROOT / "examples" / f"brokerj-{name}.pcap"))
    assert {item.dialect for item in items if isinstance(item, CapturedFrame)} <= {dialect, "amqp-0-8"}
    directions = [[item for item in items if item.direction == direction] for direction in (0, 1)]
    assert [len(each) for each in directions] == [34, 26]
    for each in directions:
        assert each[-1].offset + len(each[-1].octets) == sum(len(item.octets) for item in each)
    delivered = [item.frame.payload for item in items if item.octets[7:11] == b"\0\x3c\0\x3c"]
    assert [method.delivery_tag for method in delivered] == [2, 3]


@pytest.mark.parametrize("product", ["RabbitMQ", "ActiveMQ", 7, b"\xff"])
def test_no_other_broker_is_taken_for_one(product: object) -> None:
    items = list(capture.read_frames(io.BytesIO(talk(amqp08, product))))
    assert [item.message for item in items if not isinstance(item, CapturedFrame)][:2] == [
        "no method 22 in class 40",
        "no method 23 in class 40",
    ]
