"""Cutting a stream into frames. One text for both builds: stream_c is this file, compiled.

Frame (0-9-1 section 4.2.3): type octet, channel short, payload size long, payload, end octet 0xCE.

Octets are decoded where they lie. Only a frame that spans chunks is copied together, and only up to its
own end, so that the cost of a stream does not depend on how it was cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from sys import exc_info

from .._typing import TYPE_CHECKING, Any, ClassVar
from ..errors import CHANNEL_ERROR, COMMAND_INVALID, FRAME_ERROR, SYNTAX_ERROR, DecodeError, DecoderInUseError
from ..limits import MAX_LIMIT, Limits, checked_limits
from ..profiles import table_profile
from ..spec import violation
from .reader_py import ReaderRules
from .records_py import Frame, Heartbeat, OpaquePayload, ProtocolHeader
from .turn_py import Turn
from .wire import ENVELOPE_SIZE, FRAME_END, HEARTBEAT, OVERHEAD, PROTOCOL_HEADER

if TYPE_CHECKING:
    from .dialect_py import Dialect

RECEIVE_SIZE = 65536  # octets of the buffer lent to asyncio

DEFAULT_LIMITS = Limits()

NOTHING: Iterator[Any] = iter(())  # used up from the start, so that all decoders can give it out


class StreamDecoder:
    """What `FrameDecoder` and `MessageDecoder` share: buffering, envelopes, payloads, errors."""

    __slots__ = (
        "_chunk", "_dialect", "_end", "_error", "_methods", "_need",
        "_offset", "_partial", "_pin", "_pos", "_properties", "_queue", "_reader", "_receive", "_record",
        "_size_limit", "_strict", "_turn", "_types",
    )  # fmt: skip

    dialect: ClassVar[Dialect]

    def __init__(
        self,
        *,
        frame_max: int = 131072,
        frame_max_slack: int = 0,
        tables: str = "dict",
        profile: str | None = None,
        strict: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if not isinstance(frame_max, int) or (frame_max != 0 and frame_max <= OVERHEAD):
            raise ValueError(f"frame_max must be 0 or more than {OVERHEAD}, not {frame_max!r}")
        if not isinstance(frame_max_slack, int) or frame_max_slack < 0:
            raise ValueError(f"frame_max_slack must not be negative, not {frame_max_slack!r}")
        if tables not in ("dict", "raw"):
            raise ValueError(f'tables must be "dict" or "raw", not {tables!r}')
        limits = checked_limits(limits)
        dialect = self.dialect
        table_rules = dialect.profile if profile is None else table_profile(profile)
        self._dialect = dialect
        self._reader = ReaderRules(table_rules, strict, limits, tables == "raw").reader(True)
        self._methods = dialect.method_dispatch
        self._properties = dialect.properties_dispatch
        self._types = sum(1 << frame_type for frame_type in dialect.frame_types)
        frame_size = min(frame_max or limits.frame_size, limits.frame_size)
        self._size_limit = min(frame_size - OVERHEAD + frame_max_slack, MAX_LIMIT - OVERHEAD)
        self._strict = strict
        self._receive: bytearray | None = None
        self._turn = Turn()
        self.reset()

    def reset(self) -> None:
        """Forget all octets and any error: the next octet fed is the first of a new stream.

        A decoder that an interrupt has left in the middle of a call is of use again.

        Raises:
            DecoderInUseError: called while the decoder is decoding.
        """
        turn = self._turn
        if turn is None or not (turn.take() or turn.take_over()):
            raise self._entry_refused()
        try:
            self._forget()
        finally:
            turn.end()

    def _forget(self) -> None:
        self._chunk: bytes | bytearray = b""  # being read from _pos up to _end
        self._pos = 0
        self._end = 0
        self._queue: deque[bytes] | None = None  # chunks fed before the one being read was used up
        self._partial: Any = None  # a frame begun in chunks that are used up, in a bytearray
        self._need = 0  # octets of that frame, or of its envelope as long as that is not whole
        self._offset = 0  # octets of the stream before the next frame
        self._error: DecodeError | None = None
        self._record: Any = None  # the method or properties being read, to name it in errors
        self._pin: memoryview | None = None
        self._reader.attach(b"")

    def _let_go(self) -> None:
        """Hold no octets that are used up: an idle decoder must not keep a large chunk alive."""
        if self._end:
            self._chunk = b""
            self._pos = self._end = 0
            self._pin = None
            self._reader.attach(b"")

    # -- octets in

    def feed(self, data: Any) -> Any:
        """Take octets from the stream.

        Args:
            data: bytes or any bytes-like object, cut anywhere. What is not `bytes` is copied.

        Returns:
            An iterator over what is complete so far: the decoder itself, which decodes as it is asked, and
            buffers for the next time what it is not asked for; or an empty one, where the octets go to
            a frame that still lacks some.

        Raises:
            TypeError: data is not bytes-like.
            DecoderInUseError: called while the decoder is decoding.
        """
        # Before the turn is taken, since octets may be had from a caller's code that feeds this decoder.
        octets = data if type(data) is bytes else memoryview(data).tobytes()
        turn = self._turn
        self._take_turn(turn)
        try:
            telling = self._put(octets)
        finally:
            turn.end()
        return self if telling else NOTHING

    def _put(self, octets: bytes) -> bool:
        """Have octets decoded after those that are there; False where they only add to a frame that still
        lacks some."""
        if self._only_adds(octets):
            return False
        if self._pos == self._end and not self._queue:
            self._chunk = octets
            self._pos = 0
            self._end = len(octets)
        elif octets:
            if self._queue is None:
                self._queue = deque()
            self._queue.append(octets)
        return True

    def _only_adds(self, octets: bytes) -> bool:
        """Add octets to the frame begun, where they do not make it whole and nothing comes before them."""
        partial = self._partial
        if partial is None or self._pos != self._end or self._queue or self._error is not None:
            return False
        if len(partial) + len(octets) >= self._need:
            return False
        partial += octets
        return True

    def get_buffer(self, sizehint: int) -> memoryview:
        """A buffer to receive into, for `asyncio.BufferedProtocol.get_buffer`.

        Args:
            sizehint: ignored; the buffer has 65536 octets.

        Raises:
            DecoderInUseError: called while the decoder is decoding.
        """
        turn = self._turn
        self._take_turn(turn)
        try:
            receive = self._receive
            if receive is None or len(receive) != RECEIVE_SIZE or self._pos != self._end or self._queue:
                # Frames not asked for yet may still lie in the last buffer, and its size is the borrower's
                # to change: lend out another.
                receive = self._receive = bytearray(RECEIVE_SIZE)
            return memoryview(receive)
        finally:
            turn.end()

    def buffer_updated(self, nbytes: int) -> Any:
        """Take the first octets of the buffer lent by `get_buffer`.

        Args:
            nbytes: octets received into it.

        Returns:
            An iterator over what is complete so far, as `feed` does.

        Raises:
            ValueError: no buffer was lent, or it is not that large.
            TypeError: nbytes is not an int.
            DecoderInUseError: called while the decoder is decoding.
        """
        size = int.__add__(nbytes, 0)  # the number itself, whatever a subclass makes of its comparisons
        if not 0 <= size <= RECEIVE_SIZE:
            raise ValueError(f"no buffer of {size} octets was lent")
        turn = self._turn
        self._take_turn(turn)
        try:
            self._put_received(size)
        finally:
            turn.end()
        return self

    def _put_received(self, size: int) -> None:
        """Have the first octets of the lent buffer decoded, where they lie if there are none before them."""
        receive = self._receive
        if receive is None:
            raise ValueError("no buffer was lent")
        pin = memoryview(receive)  # as long as it is held, nobody can change the size of the buffer
        if size > len(pin):
            raise ValueError(f"no buffer of {size} octets was lent")
        if self._pos == self._end and not self._queue:
            self._pin = pin
            self._chunk = receive
            self._pos = 0
            self._end = size
        else:
            self._put(bytes(pin[:size]))

    @property
    def pending(self) -> int:
        """Octets taken in and not yet given out."""
        turn = self._turn
        self._take_turn(turn)
        try:
            queued = sum(map(len, self._queue)) if self._queue else 0
            partial = len(self._partial) if self._partial is not None else 0
            return self._end - self._pos + queued + partial
        finally:
            turn.end()

    @property
    def offset(self) -> int:
        """Octets from the start of the stream to the end of the last frame read."""
        return self._offset

    def skip_frame(self) -> None:
        """After an error that is not fatal, leave the bad frame out and let iteration go on behind it.

        Raises:
            DecodeError: the error is fatal: no frame can be trusted to begin anywhere.
            DecoderInUseError: called while the decoder is decoding.
        """
        turn = self._turn
        self._take_turn(turn)
        try:
            if self._error is not None and self._error.fatal:
                raise self._error.again()
            self._error = None
        finally:
            turn.end()

    # -- values out

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        # As `_take_turn`, which would be one call more for every frame.
        turn = self._turn
        if turn is None or not turn.take():
            raise self._entry_refused()
        done = False
        try:
            try:
                if self._error is not None:
                    raise self._error.again()
                value = self._next()
                done = True
            finally:
                # Not `except`, which costs something for every frame even where nothing is raised.
                if not done:
                    self._blame(exc_info()[1])
        finally:
            if self._pos == self._end:
                self._let_go()
            turn.end()
        if value is None:
            raise StopIteration
        return value

    def _next(self) -> Any:
        """The next value, or None when more octets are needed."""
        raise NotImplementedError

    def __reduce__(self) -> Any:
        raise TypeError("a decoder cannot be copied or pickled: it stands in the middle of a stream")

    def _take_turn(self, turn: Any) -> None:
        """Enter the decoder, or refuse: by a second thread or from a callback it would be corrupted.

        The caller has its turn in a variable `turn` as long as it lasts: see `Turn.take_over`.
        """
        if turn is None or not turn.take():
            raise self._entry_refused()

    def _entry_refused(self) -> Exception:
        if self._turn is None:
            return AttributeError("this decoder was not initialised")
        return DecoderInUseError("this decoder is decoding: feed and iterate it from one place at a time")

    def _blame(self, error: BaseException | None) -> None:
        """Add to an error of the wire what only the decoder knows, and keep it."""
        record = self._record
        self._record = None  # no error to come is about it
        if self._error is None and isinstance(error, DecodeError):
            error.dialect = self._dialect.name
            if record is not None:
                error.method = record.spec.name
            self._error = error.again()

    # -- envelopes

    def _advance(self) -> bool:
        """Aim the reader at the payload of the next whole frame; False when it is not there yet."""
        while True:
            if self._partial is not None:
                if self._fill():
                    self._enter(0, self._need)
                    self._partial = None
                    return True
            else:
                left = self._end - self._pos
                if left >= ENVELOPE_SIZE:
                    self._reader.attach(self._chunk)
                    size = self._frame_size(self._pos)
                    if size <= left:
                        at = self._pos
                        self._pos += size
                        self._enter(at, size)
                        return True
                    self._set_aside(size)
                elif left > 0:
                    self._set_aside(ENVELOPE_SIZE)
            if not self._queue:
                return False
            self._chunk = self._queue.popleft()
            self._pos = 0
            self._end = len(self._chunk)

    def _set_aside(self, need: int) -> None:
        """Keep the rest of the chunk, the beginning of a frame of `need` octets."""
        self._partial = bytearray(self._chunk[self._pos : self._end])
        self._need = need
        self._pos = self._end

    def _fill(self) -> bool:
        """Add to the frame set aside what it lacks; True once it is whole."""
        if not self._top_up(self._need):
            return False
        if self._need == ENVELOPE_SIZE:
            self._reader.attach(self._partial)
            self._need = self._frame_size(0)
            if not self._top_up(self._need):
                return False
        # Growing may have moved the octets, so nothing is attached before the last has come.
        self._reader.attach(self._partial)
        return True

    def _top_up(self, size: int) -> bool:
        partial = self._partial
        stop = min(self._pos + size - len(partial), self._end)
        partial += self._chunk[self._pos : stop]
        self._pos = stop
        return len(partial) >= size

    def _frame_size(self, at: int) -> int:
        """Octets of the frame whose envelope lies at `at`, refused here if it never could be taken."""
        reader = self._reader
        size = reader.envelope(at)
        frame_type = reader.frame_type
        if frame_type == PROTOCOL_HEADER and self._offset == 0:
            return OVERHEAD
        if frame_type > 31 or not self._types >> frame_type & 1:
            raise self._fatal(_unknown_type(frame_type), 0)
        if size > self._size_limit:
            raise self._fatal(
                f"frame of {size + OVERHEAD} octets, frame_max {self._size_limit + OVERHEAD}", 3
            )
        return size + OVERHEAD

    def _enter(self, at: int, size: int) -> None:
        """Aim the reader at the payload of a whole frame, whose envelope it has read."""
        reader = self._reader
        if reader.frame_type == PROTOCOL_HEADER:
            reader.aim(at, at + size, self._offset)
        else:
            octet = reader.octet_at(at + size - 1)
            if octet != FRAME_END:
                raise self._fatal(f"frame ends with octet {octet:#04x}, not 0xce", size - 1)
            reader.aim(at + ENVELOPE_SIZE, at + size - 1, self._offset + ENVELOPE_SIZE)
        self._offset += size

    def _fatal(self, message: str, ahead: int) -> DecodeError:
        return DecodeError(message, FRAME_ERROR, self._offset + ahead, fatal=True)

    # -- payloads

    def _frame(self, frame_type: int, channel: int, payload: Any) -> Frame:
        """A `Frame` without the cost of a constructor call, which tells in the compiled build."""
        frame = Frame.__new__(Frame)
        frame.type = frame_type
        frame.channel = channel
        frame.payload = payload
        return frame

    def _read_method(self) -> Any:
        reader = self._reader
        if reader.left() < 4:
            raise reader.refuse(FRAME_ERROR, f"method of {reader.left()} octets has no ids", 0)
        index = reader.method_index()
        method = self._methods.create(index)
        if method is None:
            message = f"no method {index & 0xFFFF} in class {index >> 16}"
            raise reader.refuse(COMMAND_INVALID, message, 4)
        self._record = method
        method._read(reader)
        reader.finish()
        if self._strict:
            self._check_method(method, index >> 16)
        self._record = None
        return method

    def _check_method(self, method: Any, class_id: int) -> None:
        """What only strict mode demands of a method: its channel, and the asserts of the specification."""
        reader = self._reader
        if class_id == self._dialect.connection_class and reader.channel != 0:
            raise reader.refuse_frame(COMMAND_INVALID, "a connection method belongs on channel 0")
        if class_id != self._dialect.connection_class and reader.channel == 0:
            raise reader.refuse_frame(CHANNEL_ERROR, "channel 0 takes connection methods only")
        broken = violation(method.spec, method)
        if broken is not None:
            field, check = broken
            error = reader.refuse_frame(SYNTAX_ERROR, f"breaks the assert {check}")
            error.field = field.name
            raise error

    def _read_properties(self) -> Any:
        """A content header's properties; the reader keeps its weight and body size."""
        reader = self._reader
        if reader.channel == 0:
            raise reader.refuse_frame(CHANNEL_ERROR, "content does not belong on channel 0")
        class_id = reader.content_head()
        properties = self._properties.create(class_id)
        if properties is None:
            raise reader.refuse(FRAME_ERROR, f"class {class_id} carries no content", 12)
        if self._strict and reader.weight != 0:
            message = f"content weight {reader.weight}, not 0"
            raise reader.refuse(self._dialect.weight_not_zero, message, 10)
        self._record = properties
        properties._read(reader)
        reader.finish()
        self._record = None
        return properties

    def _read_body(self) -> bytes:
        reader = self._reader
        if reader.channel == 0:
            raise reader.refuse_frame(CHANNEL_ERROR, "content does not belong on channel 0")
        return reader.rest()

    def _read_other(self) -> Frame:
        """A frame of none of the three kinds that make up methods and content."""
        reader = self._reader
        if reader.frame_type == PROTOCOL_HEADER:
            return self._frame(PROTOCOL_HEADER, 0, self._read_protocol_header())
        if reader.frame_type != HEARTBEAT:
            return self._frame(reader.frame_type, reader.channel, OpaquePayload(reader.rest()))
        if reader.channel != 0:
            raise reader.refuse_frame(FRAME_ERROR, "a heartbeat belongs on channel 0")
        if reader.left():
            raise reader.refuse(FRAME_ERROR, f"heartbeat with a payload of {reader.left()} octets", 0)
        return self._frame(HEARTBEAT, 0, Heartbeat())

    def _read_protocol_header(self) -> ProtocolHeader:
        octets = self._reader.rest()
        if octets not in self._dialect.accepted_headers:
            message = f"protocol header {octets!r} is not of {self._dialect.name}"
            raise DecodeError(message, FRAME_ERROR, 0, fatal=True)
        return ProtocolHeader(octets)


def _unknown_type(frame_type: int) -> str:
    if frame_type in (9, 10):
        return f"frame type {frame_type}: the request and response frames of 0-9 are not supported"
    return f"frame type {frame_type} is not known"
