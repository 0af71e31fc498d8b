"""Frames, messages and faults as JSON, one object a line, always with the same keys."""

from __future__ import annotations

import json
import struct
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any

from .._kernel.wire import BODY, HEADER, METHOD
from ..capture import DIRECTION_NAMES, CapturedFrame, Connection, Fault, Item
from .forms import Form
from .rendering import Parts, Stamps, frame_kind, json_text

if TYPE_CHECKING:
    from .messages_py import ShownMessage

_FAULT_KEYS = (
    "kind", "type", "channel", "size", "class_id", "method_id", "method", "fields", "properties", "body_size",
    "body", "length", "reply_code", "message",
)  # fmt: skip
_MESSAGE_KEYS = ', "queue": null, "frames": null, "complete": null'
_NO_FAULT = '"length": null, "reply_code": null, "message": null'
_MOST_KEPT = 4096  # parts of lines that are kept, since others have them too


class JsonLines(Form):
    """Makes JSON lines, in ASCII, so that octets which are not text stay apart as escaped surrogates.

    Args:
        file: the name to put into every line.
        body_bytes: bytes of a body to show.
        include_credentials: whether to show what a client logs in with.
        messages: whether lines are of messages, with what only those have.
    """

    separator = ", "
    json = True

    def __init__(self, file: str, body_bytes: int, include_credentials: bool, messages: bool) -> None:
        super().__init__(Parts(lambda name: f"{quoted(name)}: ", json_text, include_credentials), body_bytes)
        self._stamps = Stamps("T", 9, "Z")
        self._ends: dict[tuple[Connection, int | None], str] = {}
        self._more = _MESSAGE_KEYS if messages else ""
        self._file = f'"file": {quoted(file)}'
        self._methods: dict[type, str] = {}

    def begin(self, item: CapturedFrame) -> str:
        """Time, place and packet."""
        return self._begin(item)

    def frame(
        self, item: CapturedFrame, offset: object, size: object, fields: str, body_size: object, body: str
    ) -> str:
        """The other keys."""
        frame, payload = item.frame, item.frame.payload
        ids = '"class_id": null, "method_id": null, "method": null'
        arguments = properties = shown = "null"
        announced: object = "null"
        kind = frame_kind(item)
        if frame.type == METHOD:
            ids = self._method(payload)
            arguments = f"{{{fields}}}"
        elif frame.type == HEADER:
            ids = f'"class_id": {payload.properties.spec.class_id}, "method_id": null, "method": null'
            properties, announced = f"{{{fields}}}", body_size
        elif frame.type == BODY:
            shown = f'"{body}"'
        elif kind == "protocol":
            shown = f'"{payload.octets.hex()}"'
            if item.connection.proxied is not None:
                client, server = map(str, item.connection.proxied)
                arguments = json.dumps({"proxied_client": client, "proxied_server": server})
        elif kind != "heartbeat":
            shown = f'"{item.octets[7:-1][: self.body_bytes].hex()}"'
        what = (
            f'"kind": "{kind}", "type": {frame.type}, "channel": {frame.channel}, "size": {size}, '
            f'{ids}, "fields": {arguments}, "properties": {properties}, "body_size": {announced}, '
            f'"body": {shown}, {_NO_FAULT}'
        )
        return self._end(offset, what, item.dialect, self._more)

    def body(self, octets: bytes, size: int) -> str:
        """In hex."""
        return octets.hex()

    def message(
        self, message: ShownMessage, offset: object, fields: str, queue: str, properties: str, size: object,
        body: str, frames: object,
    ) -> str:  # fmt: skip
        """The other keys."""
        first = message.first
        method = arguments = shown = body_size = "null"
        ids = '"class_id": null, "method_id": null'
        if message.method is not None:
            spec = message.method.spec
            ids = f'"class_id": {spec.class_id}, "method_id": {spec.method_id}'
            method, arguments = quoted(spec.name), f"{{{fields}}}"
        if message.header is not None:
            shown = f"{{{properties}}}"
            # All of the body of a complete message has come.
            body_size = f"{size if message.complete else message.header.body_size}"
        what = (
            f'"kind": "message", "type": null, "channel": {first.frame.channel}, "size": null, {ids}, '
            f'"method": {method}, "fields": {arguments}, "properties": {shown}, "body_size": {body_size}, '
            f'"body": "{body}", {_NO_FAULT}'
        )
        complete = "true" if message.complete else "false"
        known = "null" if message.queue is None else queue
        more = f', "queue": {known}, "frames": {frames}, "complete": {complete}'
        return self._end(offset, what, first.dialect, more)

    def fault(self, fault: Fault) -> str:
        """The line of a fault."""
        what = json.dumps(_fault(fault))[1:-1]
        dialect = fault.connection.dialect if fault.connection else None
        return self._begin(fault) + self._end(fault.offset, what, dialect, self._more)

    def _begin(self, item: Item) -> str:
        time_ns = item.time_ns
        stamp = self._stamps.text(time_ns)
        time = (
            f'"time": "{stamp}", "time_ns": {time_ns}'
            if stamp
            else f'"time": null, "time_ns": {json_text(time_ns)}'
        )
        packet = "null" if item.packet is None else item.packet
        return f'{{{time}, {self._place(item.connection, item.direction)}, "packet": {packet}, '

    def _end(self, offset: object, what: str, dialect: str | None, more: str) -> str:
        return f'"offset": {offset}, {what}, "dialect": {json_text(dialect)}, {self._file}{more}}}\n'

    def _method(self, payload: Any) -> str:
        ids = self._methods.get(type(payload))
        if ids is None:
            spec = payload.spec
            ids = f'"class_id": {spec.class_id}, "method_id": {spec.method_id}, "method": {quoted(spec.name)}'
            self._methods[type(payload)] = ids
        return ids

    def _place(self, connection: Connection | None, direction: int | None) -> str:
        """The keys that say between which ends something was sent."""
        if connection is None:
            return _ends(connection, direction)
        key = connection, direction
        ends = self._ends.get(key)
        if ends is None:
            if len(self._ends) >= _MOST_KEPT:
                self._ends.clear()
            ends = self._ends[key] = _ends(connection, direction)
        return ends


def _ends(connection: Connection | None, direction: int | None) -> str:
    row = {
        "connection": connection and connection.number,
        "client": str(connection.client) if connection and connection.client else None,
        "server": str(connection.server) if connection and connection.server else None,
        "direction": None if direction is None else DIRECTION_NAMES[direction],
    }
    return json.dumps(row)[1:-1]


def _fault(fault: Fault) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(_FAULT_KEYS)
    row.update(
        kind=fault.kind, length=fault.length, reply_code=fault.reply_code, message=fault.message
    )  # fmt: skip
    if len(fault.octets) >= 8:
        row["type"], row["channel"], row["size"] = struct.unpack_from("!BHI", fault.octets)
        if row["type"] == 1 and row["size"] >= 4:
            row["class_id"], row["method_id"] = struct.unpack_from("!HH", fault.octets, 7)
    return row
