"""What the package made for the specification of `own_spec` does, as JSON to compare between builds.

Run as a script with the package on the path; the build is the one that AMQPCODEC_IMPL names.
"""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    import own
from support.outcomes import decoding, describe, encoding

from amqpcodec import IMPL, InlineContent, Message, ReferenceContent

MOMENT = datetime(2024, 2, 29, 12, 0, 1, tzinfo=UTC)
TABLE = {"a": [1, "x", {"b": Decimal("1.25")}], "when": MOMENT, "none": None, "k": b"\xff"}
EXAMPLES: dict[str, tuple[Any, Any]] = {
    "bit": (True, False),
    "octet": (255, 1),
    "short": (65535, 258),
    "long": (2**32 - 1, 16909060),
    "longlong": (2**64 - 1, 72623859790382856),
    "shortstr": ("ż" * 127, "abc"),
    "longstr": (b"\x00\xff" * 200, b"abc"),
    "timestamp": (2**64 - 1, MOMENT),
    "table": (TABLE, {"k": 1}),
    "content": (InlineContent(b"in"), ReferenceContent(b"ref")),
}
WRONG: tuple[Any, ...] = (None, -1, 256, 2**64, "x" * 256, "text", b"octets", 1.5, {"k": object()}, object)
HEAD = 7  # octets of a frame before its payload


def examples(cls: Any) -> list[Any]:
    """Instances of a method or properties class: nothing given, each field alone, two with everything."""
    names = {field.attribute: field.type for field in cls.spec.fields}
    full = [{name: EXAMPLES[type_][which] for name, type_ in names.items()} for which in (0, 1)]
    every_other = {name: EXAMPLES[type_][0] for name, type_ in list(names.items())[::2]}
    alone = [{name: EXAMPLES[type_][0]} for name, type_ in names.items()]
    return [cls(**given) for given in ({}, *full, every_other, *alone)]


def framed(octets: bytes, payload: bytes) -> bytes:
    """The frame with another payload."""
    return octets[:3] + len(payload).to_bytes(4, "big") + payload + b"\xce"


def after_damage(octets: bytes) -> list[Any]:
    """The results of every truncation of payload and frame, and of one octet too many."""
    payload = octets[HEAD:-1]
    short = [decoding(own.FrameDecoder(), [framed(octets, payload[:size])]) for size in range(len(payload))]
    long = decoding(own.FrameDecoder(), [framed(octets, payload + b"\0")])
    waiting = [decoding(own.FrameDecoder(), [octets[:size]]) for size in range(len(octets))]
    assert all(error is not None and not values for values, error, _, _ in [*short, long]), "damage passed"
    assert [(values, error) for values, error, _, _ in waiting] == [([], None)] * len(waiting)
    return [(seen[1], seen[3]) for seen in (*short, long)]


def one(octets: bytes) -> Any:
    [frame] = own.FrameDecoder().feed(octets)
    return frame


def of_method(cls: Any) -> dict[str, Any]:
    given = examples(cls)
    octets = [own.encode_method(5, method) for method in given]
    read = [one(each).payload for each in octets]
    assert all(type(method) is cls for method in read)
    assert [own.encode_method(5, method) for method in read] == octets
    for method in given:
        assert pickle.loads(pickle.dumps(method)) == method
        assert copy.deepcopy(method) == method
    return {
        "octets": [each.hex() for each in octets],
        "equal": [a == b for a, b in zip(given, read, strict=True)],
        "values": [describe(method) for method in read],
        "shown": [repr(method) for method in read],
        "damage": [after_damage(octets[0]), after_damage(octets[2])],
        "refused": refused(cls, lambda method: own.encode_method(5, method)),
        "valid": [
            encoding(lambda method=method: own.encode_method(5, method, validate=True)) for method in given
        ],
    }


def of_properties(cls: Any) -> dict[str, Any]:
    given = examples(cls)
    octets = [own.encode_header(5, properties, 2**64 - 1) for properties in given]
    read = [one(each).payload.properties for each in octets]
    assert [own.encode_header(5, properties, 2**64 - 1) for properties in read] == octets
    return {
        "octets": [each.hex() for each in octets],
        "equal": [a == b for a, b in zip(given, read, strict=True)],
        "values": [describe(properties) for properties in read],
        "shown": [repr(properties) for properties in read],
        "damage": [after_damage(octets[0]), after_damage(octets[2])],
        "refused": refused(cls, lambda properties: own.encode_header(5, properties, 0)),
        "by position": (cls.__match_args__, encoding(lambda: cls(*[None] * len(cls.spec.fields)))[0]),
    }


def refused(cls: Any, encode: Any) -> list[Any]:
    """What comes of values that a field cannot have."""
    seen = []
    for field in cls.spec.fields:
        for wrong in WRONG:
            instance = cls()
            setattr(instance, field.attribute, wrong)
            seen.append((field.name, str(wrong)[:9], encoding(lambda instance=instance: encode(instance))))
    return seen


def of_message(cls: Any) -> dict[str, Any]:
    properties_class = own.PROPERTIES[cls.spec.class_id]
    properties, method, body = examples(properties_class)[2], examples(cls)[2], b"body" * 5000
    octets = own.encode_message(5, method, properties, body, frame_max=16384)
    values: list[Any] = list(own.MessageDecoder(frame_max=16384).feed(octets))
    assert len(values) == 1
    message = values[0]
    assert (message.method, message.properties, message.body) == (method, properties, body)
    assert b"".join(own.encode_message_parts(5, method, properties, body, frame_max=16384)) == octets
    assert b"".join(own.encode_messages([(5, method, properties, body)] * 3, frame_max=16384)) == octets * 3
    changes = {field.attribute: getattr(method, field.attribute) for field in method.spec.fields}
    assert own.prepare_message(5, method, properties, frame_max=16384).encode(body, **changes) == octets
    for size in range(0, len(octets), 97):
        assert list(own.MessageDecoder(frame_max=16384).feed(octets[:size])) == []
    return {"octets": octets.hex(), "message": describe(message), "is ours": isinstance(message, Message)}


def main() -> None:
    methods = {cls.spec.name: cls for cls in own.METHODS.values()}
    print(
        json.dumps(
            {
                "build": IMPL,
                "module": own.FrameDecoder.__module__,
                "methods": {name: of_method(cls) for name, cls in methods.items()},
                "properties": {cls.spec.name: of_properties(cls) for cls in own.PROPERTIES.values()},
                "messages": {name: of_message(cls) for name, cls in methods.items() if cls.spec.content},
                "header": own.protocol_header().hex(),
                "constants": dict(own.DIALECT.constants),
                "attributes": {name: [f.attribute for f in cls.spec.fields] for name, cls in methods.items()},
                "ids": {name: (cls.spec.class_id, cls.spec.method_id) for name, cls in methods.items()},
                "warnings": [str(warning.message) for warning in warned],
                "names": sorted(own.__all__),
            },
            default=str,
        )
    )


if __name__ == "__main__":
    main()
