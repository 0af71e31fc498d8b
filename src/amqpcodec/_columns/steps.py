"""Which methods say something about messages: their contents, answers and requests."""

from __future__ import annotations

from typing import Any

# What a method is to a follower.
PUBLISH, DELIVER, GET_OK, RETURN, ANSWER, REQUEST = range(1, 7)

# Contents and answers are read from octets, so these have to be their first arguments.
_TYPES: dict[str, tuple[int, tuple[str, ...]]] = {
    "basic.publish": (PUBLISH, ("short", "shortstr")),
    "basic.deliver": (DELIVER, ("shortstr", "longlong")),
    "basic.get-ok": (GET_OK, ("longlong",)),
    "basic.return": (RETURN, ()),
    "basic.ack": (ANSWER, ("longlong", "bit")),
    "basic.nack": (ANSWER, ("longlong", "bit", "bit")),
    "basic.reject": (ANSWER, ("longlong", "bit")),
}

# Requests are decoded; these are the arguments that they are asked for.
_NEEDED: dict[str, frozenset[str]] = {
    "queue.declare": frozenset(("queue", "passive", "exclusive", "auto_delete", "arguments")),
    "queue.declare-ok": frozenset(("queue", "message_count", "consumer_count")),
    "basic.consume": frozenset(("queue", "consumer_tag", "no_ack")),
    "basic.consume-ok": frozenset(("consumer_tag",)),
    "basic.cancel": frozenset(("consumer_tag",)),
    "basic.cancel-ok": frozenset(("consumer_tag",)),
    "basic.get": frozenset(("queue", "no_ack")),
    "queue.bind": frozenset(("queue", "exchange", "routing_key")),
    "queue.unbind": frozenset(("queue",)),
    "queue.delete": frozenset(("queue",)),
    "queue.purge": frozenset(("queue",)),
    "exchange.declare": frozenset(("exchange", "type", "passive")),
    "exchange.delete": frozenset(("exchange",)),
    "connection.open": frozenset(("virtual_host",)),
    **dict.fromkeys(
        (
            "basic.recover", "basic.recover-async", "basic.get-empty", "tx.select", "confirm.select",
            "channel.open", "channel.close", "channel.close-ok", "connection.close-ok", "queue.bind-ok",
        ),
        frozenset(),
    ),
}  # fmt: skip


def step_of(method: Any) -> int:
    """Return what a method is to a follower, given its class; 0 for nothing."""
    spec = method.spec
    needed = _NEEDED.get(spec.name)
    if needed is not None:
        return REQUEST if needed <= {field.attribute for field in spec.fields} else 0
    step, types = _TYPES.get(spec.name, (0, ()))
    return step if types == tuple(field.type for field in spec.fields)[: len(types)] else 0
