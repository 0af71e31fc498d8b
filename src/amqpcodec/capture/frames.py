"""From the ordered octets of connections to their frames: what the two directions of one share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, Unpack

from amqpcodec import DecodeError, Limits, _backend
from amqpcodec._kernel.wire import FRAME_SLACK
from amqpcodec._options import takes
from amqpcodec._state import Fields, Note, damaged
from amqpcodec.options import FRAME_MAX, DecodingOptions

from . import dialects
from .direction import NO_FRAME, SNAPPED, DirectionDecoder
from .envelopes import FrameReader, method_ids
from .model import (
    CLIENT_TO_SERVER,
    SERVER_TO_CLIENT,
    Aside,
    Close,
    Connection,
    Data,
    Endpoint,
    Event,
    Fault,
    FaultKind,
    Gap,
    Item,
    Proxied,
)
from .resync import FrameTest

if TYPE_CHECKING:
    from .direction_state_py import DirectionState
else:
    DirectionState = _backend.load("amqpcodec.capture.direction_state").DirectionState

LIMITS = Limits(frame_size=FRAME_MAX)
USUAL_FRAME_MAX = 131072
# Searches for frames get octets in chunks of this size. Where a search ends depends on the octets at hand, so
# both builds cut alike.
CHUNK_BYTES = 262144


class Reading:
    """How connections are read. They share its readers, so it serves one thread at a time.

    Args:
        dialect: a dialect's name, ``"auto"``, or the module of a foreign dialect.
        limits: `frame_size` is that of the largest frame accepted.
        report_foreign: whether to report a connection without a single frame.
        payloads: whether to decode what frames carry; otherwise it stays octets, and what is wrong inside a
            frame is not noticed.
        from_start: whether both directions are known to begin with a frame or a protocol header. Then they
            are followed from their first octet on.
        new_state: makes what a direction's state is kept in; None for `DirectionState` of the build in use.

    Attributes:
        automatic: whether a connection may turn out to speak any dialect.
        first: the reader of a connection of which nothing is known yet.
    """

    def __init__(
        self,
        dialect: str | ModuleType,
        limits: Limits = LIMITS,
        *,
        report_foreign: bool = True,
        payloads: bool = True,
        from_start: bool = False,
        new_state: Callable[[], DirectionState] | None = None,
    ) -> None:
        self.automatic = dialect == "auto"
        self.frame_max = limits.frame_size
        self.report_foreign = report_foreign
        self.from_start = from_start
        self.new_state = new_state or DirectionState
        self._limits = limits
        self._payloads = payloads
        self._readers: dict[tuple[Any, Any], FrameReader] = {}
        self.first = self.reader(dialects.module(dialects.DEFAULT if self.automatic else dialect), None)

    def reader(self, module: Any, alternate: Any) -> FrameReader:
        """The reader of a dialect and its alternate, or None; made once."""
        reader = self._readers.get((module, alternate))
        if reader is None:
            reader = FrameReader(module, alternate, self._limits, self._payloads)
            self._readers[module, alternate] = reader
        return reader


class ConnectionDecoder:
    """Both directions of one connection: events in, frames and faults out.

    A recording may have very many connections, so it holds nothing that they could share.

    Args:
        connection: gets its `dialect` set once that is known.
        reading: how to read it.
    """

    __slots__ = (
        "_in_step", "_open", "_trusted_size", "connection", "directions", "header_seen", "reader", "reading",
        "recognised",
    )  # fmt: skip

    def __init__(self, connection: Connection, reading: Reading) -> None:
        self.connection = connection
        self.reading = reading
        self.reader = reading.first
        self.header_seen = self.recognised = reading.from_start
        # Whether every octet so far belongs to a frame, as nobody knows of a recording.
        self._in_step = reading.from_start
        self._trusted_size = min(USUAL_FRAME_MAX + FRAME_SLACK, reading.frame_max)
        self.directions = (
            DirectionDecoder(self, CLIENT_TO_SERVER, reading.new_state()),
            DirectionDecoder(self, SERVER_TO_CLIENT, reading.new_state()),
        )
        self._open = 2

    @property
    def module(self) -> Any:
        """Module of the present dialect."""
        return self.reader.module

    @property
    def alternate(self) -> Any:
        """Return the module of the alternate dialect, or None."""
        return self.reader.alternate

    @property
    def dialect(self) -> str:
        """Name of the present dialect."""
        return self.reader.dialect

    @property
    def trusted_size(self) -> int:
        """Octets of the largest frame to believe the head of: any, where all before it were frames."""
        return self.reading.frame_max if self._in_step else self._trusted_size

    @property
    def ended(self) -> bool:
        """Return whether both directions were closed."""
        return not self._open

    def feed(self, event: Event) -> Iterator[Item]:
        """Take one event and give what can be read now."""
        direction = self.directions[event.direction]
        if isinstance(event, Data):
            for at in range(0, len(event.octets), CHUNK_BYTES):
                direction.take(event.octets[at : at + CHUNK_BYTES], event.packet, event.time_ns)
                yield from direction.advance()
        elif isinstance(event, Gap):
            yield from direction.gap(event)
        elif isinstance(event, Aside):
            yield from direction.aside(event)
        else:
            yield from direction.close(event)
            self._open -= 1
            if not self._open:
                yield from self._conclude(event)

    def snapshot(self, note: Note) -> list[Any]:
        """Return the state for `restore`; `note` is called with each packet in it."""
        spoken = " ".join(filter(None, self._spoken))
        known = [spoken, self.connection.dialect, self.header_seen, self.recognised]
        directions = (each.snapshot(note) for each in self.directions)
        proxied = [end[:2] for end in self.connection.proxied or ()]
        return [*known, self._trusted_size, self._open, *directions, *proxied]

    def restore(self, state: Fields, positions: Iterable[int]) -> None:
        """Go on from a state.

        Args:
            state: what `state` gave.
            positions: octets of each direction that have come, gaps included.

        Raises:
            ValueError: it is damaged.
        """
        readable = "auto" if self.reading.automatic else self.module
        name, _, alternate = state.text().partition(" ")  # states of earlier versions have but one
        module = dialects.readable(name, readable)
        other = dialects.readable(alternate, readable) if alternate else None
        self.reader = self.reading.reader(module, other)
        dialect = state.text_or_none()
        if dialect is not None:
            dialects.readable(dialect, readable)
        self.header_seen, self.recognised = state.flag(), state.flag()
        self._trusted_size, self._open = state.number(0, self.reading.frame_max), state.number(1, 2)
        for direction, position in zip(self.directions, positions, strict=True):
            direction.restore(state.fields(), position)
        self.connection.dialect = dialect
        if state.is_next(list):
            client, server = (_stored_end(state.fields()) for _ in range(2))
            self.connection.proxied = Proxied(client, server)
        state.end()

    def frame_test(self) -> FrameTest:
        """The test for trusted frames of the present dialect and frame size."""
        return dialects.frame_test(self.module, self.alternate, self._trusted_size)

    def recognise(self) -> None:
        """The connection is AMQP: its frames are being followed, here or elsewhere."""
        self.recognised = True
        self.connection.dialect = self.dialect

    def lose_track(self) -> None:
        """A head that follows a frame need not be one any more."""
        self._in_step = False

    def note_header(self, octets: bytes) -> bool:
        """A protocol header from the client; False if no dialect has it."""
        name = dialects.for_header(octets)
        if name is None:
            return False
        self.header_seen = True
        self._speak(dialects.Spoken(name))
        return True

    def negotiate(self, octets: bytes) -> None:
        """Take from the frame of a method what concerns the reading of later ones, in both directions."""
        method = self._negotiating(octets)
        name = method.spec.name if method else None
        if name == "connection.start":
            if self.reading.automatic:
                self._speak(dialects.for_start(method, self._spoken))
        elif name == "connection.tune-ok":
            agreed = method.frame_max or self.reading.frame_max
            self._trusted_size = min(max(agreed, USUAL_FRAME_MAX) + FRAME_SLACK, self.reading.frame_max)

    @property
    def _spoken(self) -> dialects.Spoken:
        return dialects.Spoken(self.dialect, self.alternate and self.alternate.DIALECT.name)

    def _negotiating(self, octets: bytes) -> Any:
        """The method in a frame, if it is valid and says how to read others."""
        cls = self.module.METHODS.get(method_ids(octets))
        if cls is None or cls.spec.name not in dialects.NEGOTIATING:
            return None
        try:
            return self.reader.decode(octets).payload
        except DecodeError:
            return None

    def _speak(self, spoken: dialects.Spoken) -> None:
        if self.reading.automatic and spoken != self._spoken:
            alternate = dialects.module(spoken.alternate) if spoken.alternate else None
            self.reader = self.reading.reader(dialects.module(spoken.dialect), alternate)
            self.connection.dialect = spoken.dialect

    def _conclude(self, event: Close) -> Iterator[Fault]:
        """Both directions ended: report that there was never a frame, if so."""
        total = sum(direction.state.end - direction.begin for direction in self.directions)
        if self.recognised or not total or not self.reading.report_foreign:
            return
        guess = next(filter(None, (dialects.foreign(direction.head) for direction in self.directions)), "")
        snapped = 0 if guess else sum(direction.snapped for direction in self.directions)
        if snapped:
            kind: FaultKind = "gap"
            message, total = f"{snapped} octets are {SNAPPED}; no frame can be found in the others", snapped
        else:
            kind = "lost"
            message = f"not an AMQP connection that can be decoded: {guess or NO_FRAME}"
        yield Fault(kind, message, self.connection, None, event.packet, event.time_ns, 0, total)


def _stored_end(state: Fields) -> Endpoint:
    end = Endpoint(state.octets(), state.number(0, 0xFFFF))
    if len(end.address) not in (4, 16):
        raise damaged("an address is not as long as it should be")
    state.end()
    return end


@takes(DecodingOptions)
def read_items(
    events: Iterable[Event | Fault], *, report_foreign: bool = True, **options: Unpack[DecodingOptions]
) -> Iterator[Item]:
    """The frames of every connection, in the order in which they were completed.

    Args:
        events: of `streams.read_streams`, or of a raw stream.
        report_foreign: whether to report connections without a single frame.
        options: those of `DecodingOptions`.
    """
    decoders: dict[Connection, ConnectionDecoder] = {}
    reading = Reading(
        options["dialect"], Limits(frame_size=options["frame_max"]), report_foreign=report_foreign
    )
    for event in events:
        if isinstance(event, Fault):
            yield event
            continue
        decoder = decoders.get(event.connection)
        if decoder is None:
            decoder = decoders[event.connection] = ConnectionDecoder(event.connection, reading)
        yield from decoder.feed(event)
        if decoder.ended:
            del decoders[event.connection]
