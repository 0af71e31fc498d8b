"""Contents that make up traffic, behind sound ones of their kind: both builds see the same in what is cut."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest
from support.failures import Failures
from support.implementation import Implementation
from support.make_capture import split
from support.outcomes import decoding

VALUES = {
    "bit": True, "octet": 2, "short": 312, "long": 7, "longlong": 1 << 40, "shortstr": "orders.eu",
    "table": {"tenant": "a", "attempt": 3}, "timestamp": datetime(2026, 11, 26, tzinfo=UTC),
}  # fmt: skip
METHODS = ("BasicDeliver", "BasicGetOk", "BasicPublish", "BasicReturn")


def filled(cls: Any) -> Any:
    return cls(**{field.attribute: VALUES[field.type] for field in cls.spec.fields})


def resized(frame: bytes) -> Iterator[bytes]:
    """The frame with each shorter payload and with longer ones, its envelope valid."""
    payload = frame[7:-1]
    for other in (*(payload[:size] for size in range(len(payload))), payload + b"\0", payload + payload[-9:]):
        yield frame[:3] + len(other).to_bytes(4, "big") + other + b"\xce"


def changed(frame: bytes) -> Iterator[bytes]:
    """The frame with one octet of its payload another one, each in turn."""
    for at in range(7, len(frame) - 1):
        yield frame[:at] + bytes([frame[at] ^ 0x81]) + frame[at + 1 :]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", ["FrameDecoder", "MessageDecoder"])
@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_what_is_cut_or_changed_behind_a_sound_message_is_seen_alike(
    both: tuple[Implementation, Implementation], dialect: str, name: str, kind: str, strict: bool
) -> None:
    modules: list[ModuleType] = [impl.dialect(dialect) for impl in both]
    amqp = modules[1]
    sound = amqp.encode_message(1, filled(getattr(amqp, name)), filled(amqp.BasicProperties), b"body")
    method, header, body = split(sound)
    damaged = [each + header + body for each in (*resized(method), *changed(method))]
    if name == METHODS[0]:  # the properties are the same behind each
        damaged += [method + each + body for each in (*resized(header), *changed(header))]
    decoders = [getattr(module, kind)(strict=strict) for module in modules]
    failures = Failures()
    for content in damaged:
        with failures.case(content.hex()):
            outcomes = []
            for decoder in decoders:
                decoder.reset()
                outcomes.append(decoding(decoder, [sound + content + sound]))
            assert outcomes[0] == outcomes[1]
    failures.check(at_least=20)


@pytest.mark.parametrize("name", METHODS)
def test_each_set_of_properties_is_read_as_it_was_written(codec: ModuleType, name: str) -> None:
    method, decoder = filled(getattr(codec, name)), codec.MessageDecoder()
    fields = codec.BasicProperties.spec.fields
    for chosen in range(0, 1 << len(fields), 37):
        given = {field.attribute: VALUES[field.type] for at, field in enumerate(fields) if chosen >> at & 1}
        properties = codec.BasicProperties(**given)
        [message] = decoder.feed(codec.encode_message(1, method, properties, b""))
        assert (message.method, message.properties) == (method, properties)
