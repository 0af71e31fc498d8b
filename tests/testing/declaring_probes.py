"""What is asked of a broker about direct replies, and about the arguments of declarations."""

from __future__ import annotations

from typing import Any

from probes import Basic, Confirm, Queue, consume, declare, get, queue
from probing import On, Reply, publish

REPLY_TO = "amq.rabbitmq.reply-to"
_CONSUME = consume("r", REPLY_TO, no_ack=True)
_ASKED = [queue(), _CONSUME, publish("", "q", b"ask", reply_to=REPLY_TO), 0.05, get()]


def reply(exchange: str = "", **more: Any) -> Reply:
    """Return a reply, on a channel of its own."""
    return Reply(lambda address: On(2, publish(exchange, address, b"answer", mandatory=True, **more)))


def carbon_copy(key: str) -> Reply:
    """Return a message that goes to the address for replies as well."""
    return Reply(lambda address: publish("", key, b"both", mandatory=True, headers={"CC": [address]}))


def _dead_letters(address: str) -> Any:
    return queue("q1", dead_letter_exchange="", dead_letter_routing_key=address)


REPLIES: dict[str, list[Any]] = {
    "a mandatory reply is delivered and returned": [*_ASKED, reply(), 0.1],
    "and confirmed": [*_ASKED, On(2, Confirm.Select()), reply(), 0.1],
    "a reply to who has gone is returned": [*_ASKED, Basic.Cancel("r"), reply(), 0.1],
    "a reply by another exchange is none": [*_ASKED, reply("amq.direct"), 0.1],
    "a reply by CC": [*_ASKED, carbon_copy("none"), 0.1],
    "a reply by CC, and to a queue": [*_ASKED, carbon_copy("q"), 0.1, On(2, get())],
    "a dead letter is a reply": [
        *_ASKED, Reply(_dead_letters), publish("", "q1", b"dead"), 0.05, get("q1", no_ack=False),
        Basic.Reject(2, False), 0.1,
    ],
    "declared": [
        declare(queue=REPLY_TO), declare(queue=REPLY_TO, passive=True),
        declare(queue=REPLY_TO, durable=True, exclusive=True, arguments={"x-max-length": -1}),
    ],
    "declared, and consumed as the queue declared last": [
        declare(queue=REPLY_TO), consume("c", "", no_ack=True), On(2, declare(queue=REPLY_TO)),
        On(2, consume("c", "")),
    ],
    "declared, and fetched from": [declare(queue=REPLY_TO), get("")],
    "an address is declared by others": [
        *_ASKED, Reply(lambda address: On(2, declare(queue=address))), Basic.Cancel("r"),
        Reply(lambda address: On(2, declare(queue=address))),
    ],
    "an address that is not there": [
        declare(queue=f"{REPLY_TO}.none"), On(2, publish("", f"{REPLY_TO}.none", b"1", mandatory=True)), 0.1,
    ],
    "a name like it": [declare(queue=f"{REPLY_TO}like"), On(2, publish("", REPLY_TO, mandatory=True)), 0.1],
    "no queue is bound, purged or fetched from": [
        Queue.Purge(queue=REPLY_TO), On(2, get(REPLY_TO)),
        On(3, Queue.Bind(queue=REPLY_TO, exchange="amq.direct")),
    ],
    "it can be left, and entered again": [_CONSUME, Basic.Cancel("r"), _CONSUME],
}  # fmt: skip

DECLARING: dict[str, list[Any]] = {
    f"{group}: {name}": steps for group, probes in (("replies", REPLIES),) for name, steps in probes.items()
}
