"""Frames and faults as lines for people.

    15:04:05.000123  #3 10.0.0.1:41234 > 10.0.0.2:5672  ch 1  method   basic.publish exchange='orders' ...

The client always stands on the left, so the arrow alone shows the direction; every part has its place,
so that columns can be cut and kinds be searched for.
"""

from __future__ import annotations

from typing import Any

from ..capture import CapturedFrame, Connection, Fault, Item
from .rendering import clock, escaped, frame_kind, method_fields, octets, present_properties, text

_ARROWS = {0: ">", 1: "<", None: "-"}
_RESET, _DIM = "\x1b[0m", "\x1b[2m"
_COLOURS = {
    "method": "\x1b[36m",
    "header": "\x1b[35m",
    "body": "\x1b[34m",
    "protocol": "\x1b[32m",
    "heartbeat": _DIM,
    "gap": "\x1b[33m",
    "lost": "\x1b[33m",
    "file": "\x1b[33m",
    "error": "\x1b[31m",
}


class TextLines:
    """Makes lines of text.

    Args:
        colour: whether to use ANSI colours.
        body_bytes: bytes of a body to show.
        include_credentials: whether to show what a client logs in with.
    """

    def __init__(self, colour: bool, body_bytes: int, include_credentials: bool) -> None:
        self._colour = colour
        self._body_bytes = body_bytes
        self._include_credentials = include_credentials

    def line(self, item: Item) -> str:
        """One line, with its line end."""
        if isinstance(item, Fault):
            return self._fault(item)
        where = _where(item.connection, item.direction)
        channel = f"ch {item.frame.channel}"
        return self._assemble(item.time_ns, where, channel, frame_kind(item), self._contents(item))

    def _fault(self, fault: Fault) -> str:
        where = "file" if fault.connection is None else _where(fault.connection, fault.direction)
        code = f"{fault.reply_code} " if fault.reply_code else ""
        length = f", {fault.length} octets" if fault.length else ""
        packet = f", packet {fault.packet}" if fault.packet else ""
        contents = f"{code}{escaped(fault.message)} (offset {fault.offset}{length}{packet})"
        return self._assemble(fault.time_ns, where, "-", fault.kind, contents)

    def _assemble(self, time_ns: int | None, where: str, channel: str, kind: str, contents: str) -> str:
        if self._colour:
            colour = _COLOURS.get(kind, "")
            stamp = f"{_DIM}{clock(time_ns)}  {where}{_RESET}"
            return f"{stamp}  {channel:<5} {colour}{kind:<9}{_RESET} {contents}\n"
        return f"{clock(time_ns)}  {where}  {channel:<5} {kind:<9} {contents}".rstrip() + "\n"

    def _contents(self, item: CapturedFrame) -> str:
        payload: Any = item.frame.payload
        match frame_kind(item):
            case "method":
                fields = method_fields(payload, self._include_credentials)
                return " ".join([payload.spec.name, *(f"{name}={text(value)}" for name, value in fields)])
            case "header":
                properties = payload.properties
                listed = (f"{name}={text(value)}" for name, value in present_properties(properties))
                return " ".join([properties.spec.name, f"body_size={payload.body_size}", *listed])
            case "body":
                return f"{item.size} octets {octets(payload, self._body_bytes)}"
            case "protocol":
                name, version = payload.octets[:4].decode("latin-1"), payload.octets[4:]
                return f"{escaped(name)} {'.'.join(map(str, version))}"
            case "heartbeat":
                return ""
            case _:
                return f"{item.size} octets {octets(item.octets[7:-1], self._body_bytes)}"


def _where(connection: Connection, direction: int | None) -> str:
    arrow = _ARROWS[direction]
    if connection.client is None or connection.server is None:
        return f"#{connection.number} {arrow}"
    return f"#{connection.number} {connection.client} {arrow} {connection.server}"
