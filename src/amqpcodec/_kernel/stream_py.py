"""The base of stream decoders. One text for both builds: stream_c is this file, compiled.

Octets are decoded where they lie. Only a frame that spans chunks is copied together, and only up to its
own end, so that the cost of a stream does not depend on how it was cut. `framing` knows where a frame ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from sys import exc_info

from .._protocol.codes import CHANNEL_ERROR, COMMAND_INVALID, FRAME_ERROR, SYNTAX_ERROR
from .._typing import TYPE_CHECKING, Any, ClassVar
from ..errors import DecodeError, DecoderInUseError
from ..limits import MAX_LIMIT, Limits
from ..profiles import table_profile
from ..spec import violation
from .foreign import foreign_protocol
from .lock_py import Lock
from .rawproperties_py import PropertiesReading, RawProperties
from .reader_py import ReaderRules
from .records_py import Frame, Heartbeat, OpaquePayload, ProtocolHeader
from .wire import HEADER, HEARTBEAT, METHOD, OVERHEAD, PROTOCOL_HEADER

if TYPE_CHECKING:
    from .dialect_py import Dialect

RECEIVE_SIZE = 65536  # octets of the buffer lent to asyncio

NOTHING: Iterator[Any] = iter(())  # exhausted from the start, so that all decoders can return it


class StreamDecoder:
    """The base of `FrameDecoder` and `MessageDecoder`: buffering, framing, payloads, errors."""

    __slots__ = (
        "_chunk", "_deferred", "_dialect", "_end", "_error", "_frame_max", "_frame_size", "_header_at",
        "_lock", "_methods", "_offset", "_partial", "_pin", "_pos", "_properties", "_queue", "_raw_reading",
        "_reader", "_receive", "_record", "_size_limit", "_slack", "_strict", "_types",
    )  # fmt: skip

    dialect: ClassVar[Dialect]
    _lock: Any

    def _set_up(
        self,
        rules: ReaderRules,
        frame_max: int,
        frame_max_slack: int,
        frame_size: int,
        expect_header: bool,
        raw_reading: PropertiesReading | None,
    ) -> None:
        """Initialise the decoder. C code calls it by position, which costs less than keywords.

        Args:
            rules: what `_reader_rules` gives.
            frame_max, frame_max_slack: the options.
            frame_size: that of the limits.
            expect_header: whether a protocol header may open the stream.
            raw_reading: what `_properties_reading` gives.
        """
        size_limit = _payload_limit(frame_max, frame_max_slack, frame_size)
        try:
            lock = self._lock
        except AttributeError:
            lock = None
        if lock is None:  # or else the constructor is called again
            lock = Lock()
        if not (lock.acquire() or lock.reclaim()):
            raise self._entry_refused()
        try:
            self._dialect = dialect = self.dialect
            self._reader = rules.reader(True)
            self._methods = dialect.method_dispatch
            self._properties = dialect.properties_dispatch
            self._types = dialect.frame_mask
            self._slack = frame_max_slack
            self._frame_size = frame_size
            self._raw_reading = raw_reading
            self._strict = rules.strict
            self._set_limits(frame_max, size_limit)
            self._header_at = 0 if expect_header else -1  # the offset at which a protocol header may stand
            self._receive: bytearray | None = None
            self._forget()
            self._lock = lock  # last: without it a decoder that is half set up refuses to work
        finally:
            lock.release()

    def _set_limits(self, frame_max: int, size_limit: int) -> None:
        """Judge frames by a frame_max, and payloads by the limit that follows, from now on."""
        reader = self._reader
        self._frame_max = frame_max
        self._size_limit = reader.header_limit = size_limit
        reader.limit_name = _limit_name(frame_max, self._slack, self._frame_size)
        reader.header_limit_name = reader.limit_name

    def _reader_rules(
        self, tables: str, profile: str | None, strict: bool, limits: Limits, tolerant: bool
    ) -> ReaderRules:
        """Return the reader's rules for some options; C code calls it by position, which costs less."""
        if tables not in ("dict", "raw"):
            raise ValueError(f'tables must be "dict" or "raw", not {tables!r}')
        table_rules = self.dialect.profile if profile is None else table_profile(profile)
        return ReaderRules(table_rules, strict, limits, tables == "raw", tolerant)

    def _properties_reading(
        self, properties: str, tables: str, profile: str | None, strict: bool, limits: Limits, tolerant: bool
    ) -> PropertiesReading | None:
        """Return how properties that stay octets are read later; None where they are decoded."""
        if properties not in ("decoded", "raw"):
            raise ValueError(f'properties must be "decoded" or "raw", not {properties!r}')
        if properties == "decoded":
            return None
        dialect = self.dialect
        table_rules = dialect.profile.name if profile is None else profile
        return PropertiesReading(dialect, table_rules, bool(strict), limits, tables == "raw", bool(tolerant))

    @property
    def frame_max(self) -> int:
        """Octets of the largest frame to take, envelope included; 0 for no limit but that of `limits`.

        To be set when it has been negotiated. Frames that were not asked for yet are judged by the new value,
        also if their octets are there already.

        Raises:
            ValueError: set to what is neither 0 nor an int of more than 8.
            DecoderInUseError: set while the decoder is decoding.
        """
        return self._frame_max

    @frame_max.setter
    def frame_max(self, frame_max: int) -> None:
        lock = self._lock
        self._acquire(lock)
        try:
            self._set_limits(frame_max, _payload_limit(frame_max, self._slack, self._frame_size))
            if self._partial is not None:
                self._reader.frame_size = 0  # so that the frame begun is judged with the next octets
        finally:
            lock.release()

    @frame_max.deleter
    def frame_max(self) -> None:
        raise AttributeError("frame_max cannot be deleted")

    def reset(self) -> None:
        """Forget all octets and any error: the next octet fed is the first of a new stream.

        A decoder that an interrupt has left in the middle of a call is of use again.

        Raises:
            DecoderInUseError: called while the decoder is decoding.
        """
        lock = self._lock
        if lock is None or not (lock.acquire() or lock.reclaim()):
            raise self._entry_refused()
        try:
            self._forget()
        finally:
            lock.release()

    def _forget(self) -> None:
        self._chunk: bytes | bytearray = b""  # being read from _pos up to _end
        self._pos = 0
        self._end = 0
        self._queue: deque[bytes] | None = None  # chunks fed before the one being read was used up
        self._partial: Any = None  # a frame begun in chunks that are used up, in a bytearray
        self._offset = 0  # octets of the stream before the next frame
        self._error: DecodeError | None = None
        self._record: Any = None  # the method or properties being read, to name it in errors
        self._deferred: Any = None  # a value that came with the one before it, for the next call
        self._pin: memoryview | None = None
        self._reader.attach(b"")

    def _drop_chunk(self) -> None:
        """Drop a chunk that is used up: an idle decoder must not keep it alive."""
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
        # Before the lock is acquired, since octets may come from a caller's code that feeds this decoder.
        octets = data if type(data) is bytes else memoryview(data).tobytes()
        lock = self._lock
        if lock is None or not lock.acquire():
            raise self._entry_refused()
        try:
            if self._partial is not None and self._extend(octets):
                return NOTHING
            self._put(octets)
        finally:
            lock.release()
        return self

    def _put(self, octets: bytes) -> None:
        """Decode octets after those that are there."""
        if self._pos == self._end and not self._queue:
            self._chunk = octets
            self._pos = 0
            self._end = len(octets)
        elif octets:
            if self._queue is None:
                self._queue = deque()
            self._queue.append(octets)

    def _extend(self, octets: bytes) -> bool:
        """Add octets to the frame begun, if nothing comes before them; False if they may make it whole."""
        partial = self._partial
        if self._pos != self._end or self._queue or self._error is not None:
            return False
        if len(partial) + len(octets) >= self._reader.frame_size:
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
        lock = self._lock
        self._acquire(lock)
        try:
            receive = self._receive
            if receive is None or len(receive) != RECEIVE_SIZE or self._pos != self._end or self._queue:
                # Frames not asked for yet may still lie in the last buffer, and its size is the borrower's
                # to change: lend out another.
                receive = self._receive = bytearray(RECEIVE_SIZE)
            return memoryview(receive)
        finally:
            lock.release()

    def buffer_updated(self, nbytes: int) -> Any:
        """Take in the first octets of the buffer lent by `get_buffer`.

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
        lock = self._lock
        self._acquire(lock)
        try:
            self._put_received(size)
        finally:
            lock.release()
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
        """Octets taken in that belong to no frame returned so far."""
        lock = self._lock
        self._acquire(lock)
        try:
            queued = sum(map(len, self._queue)) if self._queue else 0
            partial = len(self._partial) if self._partial is not None else 0
            return self._end - self._pos + queued + partial
        finally:
            lock.release()

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
        lock = self._lock
        self._acquire(lock)
        try:
            if self._error is not None and self._error.fatal:
                raise self._error.again()
            self._error = None
        finally:
            lock.release()

    # -- values out

    def __iter__(self) -> Any:
        return self

    def _next(self) -> Any:
        """Return the next value; None until more octets come."""
        # As `_acquire`, which would be one call more for every frame.
        lock = self._lock
        if lock is None or not lock.acquire():
            raise self._entry_refused()
        done = False
        try:
            try:
                if self._error is not None:
                    raise self._error.again()
                value = self._deferred
                if value is not None:
                    self._deferred = None
                while value is None and self._advance():
                    value = self._read()
                done = True
            finally:
                # Not `except`, which costs something for every frame even where nothing is raised.
                if not done:
                    self._blame(exc_info()[1])
        finally:
            if self._pos == self._end:
                self._drop_chunk()
            lock.release()
        return value

    def _read(self) -> Any:
        """The value of the frame that the reader is aimed at; None if it makes nothing complete."""
        raise NotImplementedError

    def __reduce__(self) -> Any:
        raise TypeError("a decoder cannot be copied or pickled: it stands in the middle of a stream")

    def _acquire(self, lock: Any) -> None:
        """Enter the decoder, or refuse: a second thread or a callback would corrupt it.

        The caller keeps the lock in a variable `lock` until it has released it: see `Lock.reclaim`.
        """
        if lock is None or not lock.acquire():
            raise self._entry_refused()

    def _entry_refused(self) -> Exception:
        if self._lock is None:
            return AttributeError("this decoder was not initialised")
        return DecoderInUseError("this decoder is decoding: feed and iterate it from one place at a time")

    def _blame(self, error: BaseException | None) -> None:
        """Add to an error of the wire what only the decoder knows, and keep it."""
        record = self._record
        self._record = None  # no error to come is about it
        if self._error is None and isinstance(error, DecodeError):
            error.dialect = self._dialect.name
            error._definition = self._dialect
            if record is not None:
                error.method = record.spec.name
            if not error.fatal:  # what is fatal is no frame, so it has neither channel nor ids
                self._identify(error)
            self._error = error.again()

    def _identify(self, error: DecodeError) -> None:
        """Add the channel and the ids of the frame that the reader is aimed at."""
        reader = self._reader
        error.channel = reader.channel
        head = reader.head()
        if error.class_id != 0:
            pass  # those of the method that a content belongs to
        elif reader.frame_type == METHOD and len(head) == 4:
            error.class_id = head[0] << 8 | head[1]
            error.method_id = head[2] << 8 | head[3]
        elif reader.frame_type == HEADER and len(head) >= 2:
            error.class_id = head[0] << 8 | head[1]

    # -- from frame to frame

    def _advance(self) -> bool:
        """Aim the reader at the payload of the next whole frame; False when it is not there yet."""
        while True:
            if self._partial is not None:
                if self._fill():
                    return True
            elif self._pos != self._end:
                if self._enter(self._chunk, self._pos, self._end):
                    self._pos += self._reader.frame_size
                    return True
                self._set_aside()
            if not self._next_chunk():
                return False

    def _next_chunk(self) -> bool:
        """Go on to the chunk after the one that is used up, if there is one."""
        if not self._queue:
            return False
        self._chunk = self._queue.popleft()
        self._pos = 0
        self._end = len(self._chunk)
        return True

    def _enter(self, data: Any, at: int, end: int) -> bool:
        """Aim the reader at the frame at data[at:end]; False where it is not whole."""
        offset, opens = self._offset, self._offset == self._header_at
        if not self._reader.enter(data, at, end, self._types, self._size_limit, offset, opens):
            return False
        self._offset = offset + self._reader.frame_size
        return True

    def _set_aside(self) -> None:
        """Keep the rest of the chunk, the beginning of a frame."""
        self._partial = bytearray(self._chunk[self._pos : self._end])
        self._pos = self._end

    def _fill(self) -> bool:
        """Add to the frame set aside what it lacks; True once the reader is aimed at its payload."""
        partial, reader = self._partial, self._reader
        while True:
            # For its envelope, and then for all of it; nothing if frame_max was set meanwhile.
            need = max(reader.frame_size - len(partial), 0)
            stop = min(self._pos + need, self._end)
            partial += self._chunk[self._pos : stop]
            self._pos = stop
            if len(partial) < reader.frame_size:
                return False
            if self._enter(partial, 0, len(partial)):
                self._partial = None
                return True

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
        method = self._methods.read_fast(index, reader)
        if method is None:
            method = self._read_slowly(index)
        if self._strict:
            self._record = method
            self._check_method(method, index >> 16)
            self._record = None
        return method

    def _read_slowly(self, index: int) -> Any:
        """Read a method that the fast path declines."""
        reader = self._reader
        method = self._methods.create(index)
        if method is None:
            message = f"no method {index & 0xFFFF} in class {index >> 16}"
            raise reader.refuse(COMMAND_INVALID, message, 4)
        self._record = method
        self._methods.read(method, reader)
        reader.finish()
        self._record = None
        return method

    def _check_method(self, method: Any, class_id: int) -> None:
        """Check a method as strict mode does: its channel, and the asserts of the specification."""
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
        if not self._properties.has(class_id):
            raise reader.refuse(FRAME_ERROR, f"class {class_id} carries no content", 12)
        return self._read_fields(class_id)

    def _read_fields(self, class_id: int) -> Any:
        """The properties of a class that carries content, behind the fixed part of the content header."""
        reader = self._reader
        if self._strict and reader.weight != 0:
            message = f"content weight {reader.weight}, not 0"
            raise reader.refuse(self._dialect.weight_not_zero, message, 10)
        if self._raw_reading is not None:
            return self._keep_properties(self._raw_reading, class_id)
        properties = self._properties.read_fast(class_id, reader)
        if properties is not None:
            return properties
        properties = self._properties.create(class_id)
        self._record = properties
        self._properties.read(properties, reader)
        reader.finish()
        self._record = None
        return properties

    def _keep_properties(self, reading: PropertiesReading, class_id: int) -> RawProperties:
        reader = self._reader
        offset = reader.offset()
        properties = reading.keep(reader.rest(), class_id, offset, reader.channel)
        if self._strict:
            properties.decoded()  # what strict mode refuses must not hide in octets
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
            message = f"protocol header {octets!r} is not of {self._dialect.name}{foreign_protocol(octets)}"
            raise DecodeError(message, FRAME_ERROR, 0, fatal=True)
        return ProtocolHeader(octets)


def _payload_limit(frame_max: int, frame_max_slack: int, frame_size: int) -> int:
    """Return the octets of the largest payload that the options of a decoder accept."""
    if not isinstance(frame_max, int) or (frame_max != 0 and frame_max <= OVERHEAD):
        raise ValueError(f"frame_max must be 0 or more than {OVERHEAD}, not {frame_max!r}")
    if not isinstance(frame_max_slack, int) or frame_max_slack < 0:
        raise ValueError(f"frame_max_slack must not be negative, not {frame_max_slack!r}")
    return min(min(frame_max or frame_size, frame_size) - OVERHEAD + frame_max_slack, MAX_LIMIT - OVERHEAD)


def _limit_name(frame_max: int, frame_max_slack: int, frame_size: int) -> str:
    """Return what errors call the limit that `_payload_limit` makes of the options: the one that counts."""
    name = "frame_max" if 0 < frame_max <= frame_size else "frame_size"
    return f"{name} + frame_max_slack" if frame_max_slack else name
