"""What a build makes of every vector and of some numbers wider than 32 bits, as text to compare.

Runs on this interpreter as a module, and under pyodide as a script that prints JSON. So nothing here may
need pytest.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from support import vectors
from support.implementation import Implementation
from support.outcomes import decoding, describe, describe_error

from amqpcodec import IMPL, AmqpError, FieldValue, Limits

SHORT_NAMES = {"0-8": "amqp-0-8", "0-9": "amqp-0-9", "0-9-1": "amqp-0-9-1", "rabbitmq": "rabbitmq-0-9-1"}
WIDE_INTEGERS = (2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, -(2**31) - 1, -(2**63))
WIDE_TIMES = (2**31, 2**32, 253402300799, 253402300800, 2**63, 2**64 - 1)
FAR_MOMENT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def outcome(do: Callable[..., Any], *arguments: Any) -> str:
    """What came of it, as text: a value with the types of its parts, or all of an error."""
    try:
        return repr(describe(do(*arguments)))
    except (AmqpError, OverflowError) as error:
        return repr(describe_error(error))


def golden(impl: Implementation) -> dict[str, str]:
    """Every golden vector: what it decodes to, and the octets that this encodes to."""
    found = {}
    for vector in vectors.load("vectors-public"):
        data = bytes.fromhex(vector["hex"])
        if vector["kind"] == "table":
            found[vector["id"]] = outcome(table_there_and_back, impl, data, vector["profile"])
        else:
            found[vector["id"]] = repr(stream_there_and_back(impl.dialect(vector["dialect"]), vector, data))
    return found


def table_there_and_back(impl: Implementation, data: bytes, profile: str) -> list[Any]:
    table = impl.tables.decode_table(data, profile)
    return [table, impl.tables.encode_table(table, profile).hex()]


def stream_there_and_back(codec: ModuleType, vector: dict[str, Any], data: bytes) -> list[Any]:
    profile = vector.get("profile")
    options = {"profile": profile, "frame_max": 0, "strict": bool(vector.get("strict_only"))}
    whole = vector["kind"] == "content" or vector.get("sequence")
    seen: list[Any] = [decoding((codec.MessageDecoder if whole else codec.FrameDecoder)(**options), [data])]
    if vector["kind"] != "invalid":
        encoder = codec.Encoder(profile=profile)
        raw = codec.FrameDecoder(**options, tables="raw").feed(data)
        seen.append("".join(encoder.encode_frame(frame).hex() for frame in raw))
    return seen


def changed_octets(impl: Implementation) -> list[str]:
    """The golden vectors of well-formed frames that do not come back octet by octet, by their names."""
    others = ("table", "tolerate", "invalid")
    frames = [v for v in vectors.load("vectors-public") if v["kind"] not in others]
    return [
        vector["id"]
        for vector in frames
        if stream_there_and_back(impl.dialect(vector["dialect"]), vector, bytes.fromhex(vector["hex"]))[1]
        != vector["hex"]
    ]


def malformed(impl: Implementation) -> dict[str, str]:
    """Every vector of damaged input: the values before the fault, and the fault."""
    found = {}
    for case in vectors.load("bad-inputs-public"):
        codec = impl.dialect(SHORT_NAMES[case["dialect"]])
        limits = Limits(table_depth=case.get("limits", {}).get("max_depth", 128))
        for key in ("hex", "hex_s2c"):
            if key in case:
                decoder = codec.MessageDecoder(limits=limits)
                found[f"{case['id']} {key}"] = repr(decoding(decoder, [bytes.fromhex(case[key])]))
    return found


def wide(impl: Implementation) -> dict[str, str]:
    """Numbers that a 32-bit interpreter could get wrong: values, moments, sizes and lengths."""
    codec = impl.dialect("rabbitmq-0-9-1")
    found = {}
    for number in WIDE_INTEGERS:
        found[f"integer {number}"] = outcome(there_and_back, codec, {"n": FieldValue("l", number)})
        found[f"plain integer {number}"] = outcome(there_and_back, codec, {"n": number})
    for seconds in WIDE_TIMES:
        found[f"time {seconds}"] = outcome(there_and_back, codec, {"t": FieldValue("T", seconds)})
        found[f"property {seconds}"] = outcome(header_there_and_back, codec, seconds)
    found["last moment"] = outcome(there_and_back, codec, {"t": FAR_MOMENT})
    for size in (2**31, 2**32, 2**64 - 1):
        found[f"body size {size}"] = outcome(codec.encode_header, 1, codec.BasicProperties(), size)
        found[f"delivery tag {size}"] = outcome(codec.encode_method, 1, codec.BasicAck(size))
    for length in (0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        octets = length.to_bytes(4, "big")
        found[f"table of {length} octets"] = outcome(codec.decode_table, octets + b"\x01k")
        frame = b"\x01\x00\x01" + octets + b"\x00\x0a"
        for limit in (0, 131072):
            found[f"frame of {length} octets, limit {limit}"] = repr(
                decoding(codec.FrameDecoder(frame_max=limit), [frame])
            )
    return found


def there_and_back(codec: ModuleType, table: dict[str, Any]) -> list[Any]:
    octets = codec.encode_table(table)
    return [octets.hex(), codec.decode_table(octets)]


def header_there_and_back(codec: ModuleType, seconds: int) -> list[Any]:
    octets = codec.encode_header(1, codec.BasicProperties(timestamp=seconds), 0)
    [frame] = codec.FrameDecoder().feed(octets)
    return [octets.hex(), frame.payload.properties.timestamp]


def everything(name: str) -> dict[str, Any]:
    """All of the above for the build `c` or `py`, and what interpreter it was."""
    impl = Implementation(name)
    return {
        "platform": sys.platform,
        "pointer bits": sys.maxsize.bit_length() + 1,
        "build in use": IMPL,
        "golden": golden(impl),
        "changed": changed_octets(impl),
        "malformed": malformed(impl),
        "wide": wide(impl),
    }


if __name__ == "__main__":
    print(json.dumps(everything("py")))
