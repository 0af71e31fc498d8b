"""Outcomes that go by slots that the compiled build overwrites: calls, attributes, decoding, encoding.

Run as a script, it prints the outcomes of the compiled build.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

from support.implementation import Implementation
from support.outcomes import describe

TIMES = 40  # more than memory is kept for


def outcomes(impl: Implementation) -> list[Any]:
    """Everything that a caller can see of these, in a form that can be compared across processes."""
    amqp = impl.dialect("rabbitmq-0-9-1")
    frame, publish = impl.records.Frame, amqp.Basic.Publish
    derived = type("Derived", (publish,), {"__module__": __name__})
    properties = amqp.BasicProperties(headers={"key": [1, "text"]}, delivery_mode=2)
    octets = amqp.encode_message(1, publish("to", "key"), properties, b"body")
    calls: list[Callable[[], Any]] = [
        *_calls_of_classes(amqp, publish, frame, derived),
        lambda: _set_and_deleted(publish("a", "b")),
        lambda: _set_and_deleted(derived("a", routing_key="b")),
        lambda: _set_and_deleted(frame(1, 2, b"")),
        lambda: amqp.encode_method(1, derived("a")),
        lambda: amqp.encode_method(channel=1, method=publish()),
        lambda: amqp.encode_message(1, publish(exchange=1), properties, b""),
        lambda: amqp.prepare_message(1, publish("a"), properties).encode(b"body", routing_key="key"),
        lambda: amqp.prepare_message(1, publish("a"), properties).encode(b"body", other="key"),
        lambda: pickle.loads(pickle.dumps(properties)),
        lambda: copy.copy(properties) == properties == copy.deepcopy(properties),
        lambda: list(amqp.FrameDecoder().feed(octets * TIMES)),
        lambda: list(amqp.MessageDecoder().feed(octets * TIMES)),
        lambda: [each.properties.headers for each in amqp.MessageDecoder(properties="raw").feed(octets)],
        lambda: list(amqp.FrameDecoder().feed(octets[:20] + b"\xff" + octets[21:])),
    ]
    return [_outcome(call) for call in calls]


def _calls_of_classes(amqp: Any, publish: Any, frame: Any, derived: Any) -> list[Callable[[], Any]]:
    return [
        lambda: [publish(), publish("a", "b", True, False), publish("a", mandatory=True)],
        lambda: [amqp.Queue.Declare(arguments=None), amqp.Queue.Declare("q", arguments={"a": 1})],
        lambda: amqp.Queue.Declare().arguments is amqp.Queue.Declare().arguments,
        lambda: [derived(), derived("a", routing_key="b")],
        lambda: publish("a", exchange="b"),
        lambda: publish(1, 2, 3, 4, 5, 6),
        lambda: publish(queue="a"),
        lambda: derived(queue="a"),
        lambda: [frame(1, 2, b""), frame(1, payload=b"", channel=2)],
        lambda: frame(1),
        lambda: amqp.FrameDecoder(frame_max="large"),
        lambda: amqp.Encoder(1, 2, 3),
    ]


def _set_and_deleted(record: Any) -> list[Any]:
    first, second, *_ = type(record).__match_args__
    setattr(record, first, [7])
    before = getattr(record, first), getattr(record, second)
    try:
        record.other = 1
        after = hasattr(record, "other")  # an instance of a class that was derived takes any
    except AttributeError:
        after = None
    return [*before, after]


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return describe(call())
    except Exception as error:
        return type(error).__name__, str(error)


if __name__ == "__main__":
    from amqpcodec._kernel.slots import ON

    print(ON, outcomes(Implementation("c")))
