"""Frames and faults as JSON, one object a line, always with the same keys."""

from __future__ import annotations

import json
import struct
from typing import Any

from ..capture import DIRECTION_NAMES, CapturedFrame, Fault, Item
from .rendering import frame_kind, iso_ns, json_value, method_fields, present_properties

_KEYS = (
    "time", "time_ns", "connection", "client", "server", "direction", "packet", "offset", "kind", "type",
    "channel", "size", "class_id", "method_id", "method", "fields", "properties", "body_size", "body",
    "length", "reply_code", "message", "dialect", "file",
)  # fmt: skip


class JsonLines:
    """Makes JSON lines, in ASCII, so that octets which are not text stay apart as escaped surrogates.

    Args:
        file: the name to put into every line.
        body_bytes: bytes of a body to show.
        include_credentials: whether to show what a client logs in with.
    """

    def __init__(self, file: str, body_bytes: int, include_credentials: bool) -> None:
        self._file = file
        self._body_bytes = body_bytes
        self._include_credentials = include_credentials

    def line(self, item: Item) -> str:
        """One line, with its line end."""
        row: dict[str, Any] = dict.fromkeys(_KEYS)
        row.update(time=iso_ns(item.time_ns), time_ns=item.time_ns, packet=item.packet, offset=item.offset)
        row["file"] = self._file
        connection = item.connection
        if connection is not None:
            row.update(connection=connection.number, dialect=connection.dialect)
            row["client"] = str(connection.client) if connection.client else None
            row["server"] = str(connection.server) if connection.server else None
        if item.direction is not None:
            row["direction"] = DIRECTION_NAMES[item.direction]
        row.update(_fault(item) if isinstance(item, Fault) else self._frame(item))
        return json.dumps(row, allow_nan=False) + "\n"

    def _frame(self, item: CapturedFrame) -> dict[str, Any]:
        frame, payload = item.frame, item.frame.payload
        row: dict[str, Any] = {"kind": frame_kind(item), "type": frame.type, "channel": frame.channel}
        row.update(size=item.size, dialect=item.dialect)
        match row["kind"]:
            case "method":
                spec = payload.spec
                row.update(class_id=spec.class_id, method_id=spec.method_id, method=spec.name)
                fields = method_fields(payload, self._include_credentials)
                row["fields"] = {name: json_value(value) for name, value in fields}
            case "header":
                properties = payload.properties
                row.update(class_id=properties.spec.class_id, body_size=payload.body_size)
                listed = present_properties(properties)
                row["properties"] = {name: json_value(value) for name, value in listed}
            case "protocol":
                row["body"] = payload.octets.hex()
            case "heartbeat":
                pass
            case _:
                row["body"] = item.octets[7:-1][: self._body_bytes].hex()
        return row


def _fault(fault: Fault) -> dict[str, Any]:
    row: dict[str, Any] = {
        "kind": fault.kind,
        "length": fault.length,
        "reply_code": fault.reply_code,
        "message": fault.message,
    }
    if len(fault.octets) >= 8:
        row["type"], row["channel"], row["size"] = struct.unpack_from("!BHI", fault.octets)
        if row["type"] == 1 and row["size"] >= 4:
            row["class_id"], row["method_id"] = struct.unpack_from("!HH", fault.octets, 7)
    return row
