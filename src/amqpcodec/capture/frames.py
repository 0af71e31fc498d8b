"""From the ordered octets of connections to their frames: what the two directions of one share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import amqpcodec
from amqpcodec import Limits

from . import dialects
from .direction import DirectionDecoder
from .model import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Close, Connection, Data, Event, Fault, Gap, Item
from .resync import FrameTest

MAX_FRAME = 16 * 1024 * 1024
USUAL_FRAME_MAX = 131072
_SLACK = 8  # octets that brokers forgive beyond the negotiated size


class ConnectionDecoder:
    """Both directions of one connection: events in, frames and faults out.

    Args:
        connection: gets its `dialect` set once that is known.
        dialect: a dialect's name, or ``"auto"``.
        max_frame: octets of the largest frame accepted.
        report_foreign: whether to tell of a connection without a single frame.
    """

    def __init__(
        self, connection: Connection, dialect: str, max_frame: int = MAX_FRAME, report_foreign: bool = True
    ) -> None:
        self.connection = connection
        self.automatic = dialect == "auto"
        self.dialect = dialects.DEFAULT if self.automatic else dialect
        self.max_frame = max_frame
        self.header_seen = False
        self.recognised = False
        self._report_foreign = report_foreign
        self._trusted_size = min(USUAL_FRAME_MAX + _SLACK, max_frame)
        self._test: FrameTest | None = None
        self._directions = (
            DirectionDecoder(self, CLIENT_TO_SERVER),
            DirectionDecoder(self, SERVER_TO_CLIENT),
        )
        self._open = 2

    @property
    def trusted_size(self) -> int:
        """Octets of the largest frame to believe in where octets before it are missing."""
        return self._trusted_size

    @property
    def ended(self) -> bool:
        """Whether both directions were closed."""
        return not self._open

    def feed(self, event: Event) -> Iterator[Item]:
        """Take one event and give what can be read now."""
        direction = self._directions[event.direction]
        if isinstance(event, Data):
            yield from direction.data(event)
        elif isinstance(event, Gap):
            yield from direction.gap(event)
        else:
            yield from direction.close(event)
            self._open -= 1
            if not self._open:
                yield from self._conclude(event)

    def frame_test(self) -> FrameTest:
        """The test for trusted frames of the present dialect and frame size."""
        if self._test is None:
            self._test = dialects.frame_test(self.dialect, self._trusted_size)
        return self._test

    def new_decoder(self) -> Any:
        """A frame decoder of the present dialect; what was recorded is read whatever size was agreed on."""
        self.recognised = True
        self.connection.dialect = self.dialect
        limits = Limits(frame_size=self.max_frame)
        return amqpcodec.dialect(self.dialect).FrameDecoder(frame_max=0, limits=limits)

    def note_header(self, octets: bytes) -> bool:
        """A protocol header from the client; False if no dialect has it."""
        name = dialects.for_header(octets)
        if name is None:
            return False
        self.header_seen = True
        self._set_dialect(name)
        return True

    def note_method(self, method: Any) -> None:
        """Learn from a method what concerns the reading of later ones."""
        name = method.spec.name
        if name == "connection.start":
            major, minor = method.version_major, method.version_minor
            self._set_dialect(dialects.for_start(major, minor, self.dialect))
        elif name == "connection.tune-ok":
            agreed = method.frame_max or self.max_frame
            self._trusted_size = min(max(agreed, USUAL_FRAME_MAX) + _SLACK, self.max_frame)
            self._test = None

    def _set_dialect(self, name: str) -> None:
        if self.automatic and name != self.dialect:
            self.dialect = self.connection.dialect = name
            self._test = None

    def _conclude(self, event: Close) -> Iterator[Fault]:
        """Both directions ended: tell if there was never a frame."""
        total = sum(direction.end for direction in self._directions)
        if self.recognised or not total or not self._report_foreign:
            return
        guesses = (dialects.foreign(bytes(direction.head)) for direction in self._directions)
        guess = next(filter(None, guesses), "no protocol header and no frame in it")
        message = f"not an AMQP connection that can be decoded: {guess}"
        yield Fault("lost", message, self.connection, None, event.packet, event.time_ns, 0, total)


def read_items(
    events: Iterable[Event | Fault], dialect: str, max_frame: int = MAX_FRAME, report_foreign: bool = True
) -> Iterator[Item]:
    """The frames of every connection, in the order in which they were completed.

    Args:
        events: of `streams.read_streams`, or of a raw stream.
        dialect: a dialect's name, or ``"auto"`` to find out for each connection.
        max_frame: octets of the largest frame accepted, whatever was negotiated.
        report_foreign: whether to tell of connections without a single frame.
    """
    if dialect != "auto":
        amqpcodec.dialect(dialect)  # complain about a wrong name now, not at the first frame
    decoders: dict[Connection, ConnectionDecoder] = {}
    for event in events:
        if isinstance(event, Fault):
            yield event
            continue
        decoder = decoders.get(event.connection)
        if decoder is None:
            decoder = ConnectionDecoder(event.connection, dialect, max_frame, report_foreign)
            decoders[event.connection] = decoder
        yield from decoder.feed(event)
        if decoder.ended:
            del decoders[event.connection]
