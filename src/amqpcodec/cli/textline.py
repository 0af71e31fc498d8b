"""Frames, messages and faults as lines for people.

    2026-11-22 15:04:05.000123  #3 10.0.0.1:41234 > 10.0.0.2:5672  ch 1  method    basic.publish exchange='...

The client always stands on the left, so the arrow alone shows the direction; every part has its place,
so that columns can be cut and kinds be searched for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._kernel.wire import BODY, HEADER, METHOD
from ..capture import CapturedFrame, Connection, Fault
from .forms import Form
from .rendering import Parts, Stamps, escaped, first_octets, frame_kind, octets, text

if TYPE_CHECKING:
    from .messages_py import ShownMessage

_MESSAGE = 0  # no type of frames
_ARROWS = {0: ">", 1: "<", None: "-"}
_RESET, _DIM = "\x1b[0m", "\x1b[2m"
_COLOURS = {
    "method": "\x1b[36m",
    "header": "\x1b[35m",
    "body": "\x1b[34m",
    "message": "\x1b[36m",
    "protocol": "\x1b[32m",
    "heartbeat": _DIM,
    "gap": "\x1b[33m",
    "lost": "\x1b[33m",
    "file": "\x1b[33m",
    "error": "\x1b[31m",
}
_NO_TIME = "---------- --:--:--.------"
_MOST_KEPT = 4096  # parts of lines that are kept, since others have them too


class TextLines(Form):
    """Makes lines of text.

    Args:
        colour: whether to use ANSI colours.
        body_bytes: bytes of a body to show.
        include_credentials: whether to show what a client logs in with.
    """

    def __init__(self, colour: bool, body_bytes: int, include_credentials: bool) -> None:
        super().__init__(Parts(lambda name: f" {name}=", text, include_credentials), body_bytes)
        self._colour = colour
        self._stamps = Stamps(" ", 6, none=_NO_TIME)
        self._places: dict[tuple[Connection, int | None], str] = {}
        self._heads: dict[tuple[int, int], str] = {}

    def begin(self, item: CapturedFrame) -> str:
        """Time and place."""
        connection, direction = item.connection, item.direction
        place = self._places.get((connection, direction)) or self._place(connection, direction)
        return self._begin(item.time_ns, place)

    def frame(
        self, item: CapturedFrame, offset: object, size: object, fields: str, body_size: object, body: str
    ) -> str:
        """Channel, kind and contents."""
        frame = item.frame
        kind, payload = frame.type, frame.payload
        if kind == METHOD:
            contents = payload.spec.name + fields
        elif kind == BODY:
            contents = f"{size} bytes {body}"
        elif kind == HEADER:
            contents = f"{payload.properties.spec.name} body_size={body_size}{fields}"
        else:
            contents = self._rare(item)
        head = self._heads.get((kind, frame.channel)) or self._head(frame_kind(item), kind, frame.channel)
        return self._end(head, contents)

    def body(self, octets: bytes, size: int) -> str:
        """As text, or in hex."""
        return first_octets(octets, size)

    def message(
        self, message: ShownMessage, offset: object, fields: str, queue: str, properties: str, size: object,
        body: str, frames: object,
    ) -> str:  # fmt: skip
        """Channel, method, queue, properties and body."""
        name = "a method that was not recorded" if message.method is None else message.method.spec.name
        queue = f" queue={queue}" if message.queue is not None else ""
        more = ""
        if not message.complete:
            more = " incomplete"
            if message.header is not None:
                size = f"{size} of {message.header.body_size}"
        head = self._head("message", _MESSAGE, message.first.frame.channel)
        return self._end(head, f"{name}{fields}{queue}{properties} {size} bytes {body}{more}")

    def fault(self, fault: Fault) -> str:
        """The line of a fault."""
        where = "file" if fault.connection is None else self._place(fault.connection, fault.direction)
        code = f"{fault.reply_code} " if fault.reply_code else ""
        length = f", {fault.length} bytes" if fault.length else ""
        packet = f", packet {fault.packet}" if fault.packet else ""
        contents = f"{code}{escaped(fault.message)} (offset {fault.offset}{length}{packet})"
        return self._begin(fault.time_ns, where) + self._end(self._coloured("-", fault.kind), contents)

    def _begin(self, time_ns: int | None, place: str) -> str:
        stamp = self._stamps.text(time_ns)
        return f"{_DIM}{stamp}  {place}{_RESET}  " if self._colour else f"{stamp}  {place}  "

    def _end(self, head: str, contents: str) -> str:
        line = f"{head} {contents}"
        return f"{line if self._colour else line.rstrip()}\n"

    def _rare(self, item: CapturedFrame) -> str:
        """Describe a frame that is neither method nor content."""
        match frame_kind(item):
            case "protocol":
                name, version = item.octets[:4].decode("latin-1"), item.octets[4:]
                proxied = item.connection.proxied
                ends = f" proxied_client={proxied.client} proxied_server={proxied.server}" if proxied else ""
                return f"{escaped(name)} {'.'.join(map(str, version))}{ends}"
            case "heartbeat":
                return ""
            case _:
                return f"{item.size} bytes {octets(item.octets[7:-1], self.body_bytes)}"

    def _place(self, connection: Connection, direction: int | None) -> str:
        if len(self._places) >= _MOST_KEPT:
            self._places.clear()
        place = self._places[connection, direction] = _where(connection, direction)
        return place

    def _head(self, kind: str, number: int, channel: int) -> str:
        if len(self._heads) >= _MOST_KEPT:
            self._heads.clear()
        head = self._heads[number, channel] = self._coloured(f"ch {channel}", kind)
        return head

    def _coloured(self, channel: str, kind: str) -> str:
        if self._colour:
            return f"{channel:<5} {_COLOURS.get(kind, '')}{kind:<9}{_RESET}"
        return f"{channel:<5} {kind:<9}"


def _where(connection: Connection, direction: int | None) -> str:
    arrow = _ARROWS[direction]
    if connection.client is None or connection.server is None:
        return f"#{connection.number} {arrow}"
    return f"#{connection.number} {connection.client} {arrow} {connection.server}"
