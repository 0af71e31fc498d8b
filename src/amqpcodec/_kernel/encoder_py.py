"""The encoders. One text for both builds: encoder_c is this file, compiled."""

from __future__ import annotations

from importlib import import_module
from sys import exc_info

from .._typing import PURE, TYPE_CHECKING, Any, ClassVar
from ..errors import EncodeError
from ..limits import Limits, checked_limits
from .publishing_py import MessagePieces, PreparedMessage
from .rawproperties_py import RawProperties
from .records_py import (
    ContentHeader,
    Frame,
    Heartbeat,
    Message,
    Method,
    OpaquePayload,
    Properties,
    ProtocolHeader,
    Record,
)
from .slots.calls_py import quicken
from .slots.constructors_py import describe
from .values import named
from .wire import (
    BODY,
    FRAME_END,
    HEADER,
    HEARTBEAT,
    METHOD,
    OVERHEAD,
    PROTOCOL_HEADER,
    as_unsigned,
)
from .writer_py import Writer, WriterRules, writer_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed import ReadableBuffer

    from .dialect_py import Dialect

_BUILDS = {"amqpcodec._kernel.records_c": "compiled", "amqpcodec._kernel.records_py": "pure"}
# As objects: the frame types that a decoder returns.
_METHOD: Any = METHOD
_HEADER: Any = HEADER
_BODY: Any = BODY
_HEARTBEAT_FRAME = b"\x08\x00\x00\x00\x00\x00\x00\xce"


class Encoder:
    """Turns methods, content headers, bodies and messages of one dialect into frames.

    Every function returns whole frames or raises `EncodeError`; nothing is returned before all of it
    could be written. An encoder keeps no state between calls and may be shared by threads.

    Args:
        frame_max: octets of the largest frame, as negotiated in connection.tune, for calls that do not say;
            0 for no limit. None: 131072 where messages are encoded, no limit for single frames.
        profile: name of a table profile in place of the dialect's own, see `amqpcodec.profiles`.
        strict: refuse zero octets in short strings (0-9-1 section 4.2.5.3).
        limits: only `table_depth` counts here.

    Source: 0-9-1 sections 4.2.3 to 4.2.7.
    """

    __slots__ = (
        "_dialect", "_given_frame_max", "_limit", "_message_limit", "_methods", "_properties", "_rules",
    )  # fmt: skip

    dialect: ClassVar[Dialect]

    def __init__(
        self,
        *,
        frame_max: int | None = None,
        profile: str | None = None,
        strict: bool = False,
        limits: Limits | None = None,
    ) -> None:
        dialect = self.dialect
        depth_limit = checked_limits(limits or Limits()).table_depth
        table_rules = dialect.profile.name if profile is None else profile
        # First what may be refused: with the rest set, C code relies on the rules.
        self._rules = writer_rules(table_rules, bool(strict), depth_limit)
        self._dialect = dialect
        self._methods = dialect.method_dispatch
        self._properties = dialect.properties_dispatch
        self.frame_max = frame_max

    @property
    def frame_max(self) -> int | None:
        """Octets of the largest frame for calls that do not say, as for the constructor.

        Raises:
            ValueError: set to what is neither None nor 0 nor an int of more than 8.
        """
        return self._given_frame_max

    @frame_max.setter
    def frame_max(self, frame_max: int | None) -> None:
        if frame_max is not None and not (
            isinstance(frame_max, int) and (frame_max == 0 or frame_max > OVERHEAD)
        ):
            raise ValueError(f"frame_max must be 0 or more than {OVERHEAD}, not {frame_max!r}")
        self._given_frame_max = frame_max
        self._limit = self._payload_limit(0 if frame_max is None else frame_max)
        self._message_limit = self._payload_limit(131072 if frame_max is None else frame_max)

    @frame_max.deleter
    def frame_max(self) -> None:
        raise AttributeError("frame_max cannot be deleted")

    def __reduce__(self) -> Any:
        raise TypeError("an encoder cannot be copied or pickled: make another")

    def encode_method(
        self, channel: int, method: Method, *, frame_max: int | None = None, validate: bool = False
    ) -> bytes:
        """One method frame.

        Args:
            channel: 0 to 65535.
            method: a method of this dialect.
            frame_max: octets of the largest frame allowed; 0 for no limit, None for the encoder's.
            validate: check the asserts of the specification as well.

        Raises:
            EncodeError: a value its field cannot carry, or a frame over frame_max.
        """
        return self._one_method(channel, method, frame_max, validate)

    def encode_header(
        self,
        channel: int,
        properties: Properties,
        body_size: int,
        *,
        weight: int = 0,
        frame_max: int | None = None,
    ) -> bytes:
        """One content header frame.

        Args:
            channel: 0 to 65535.
            properties: properties of a content class of this dialect.
            body_size: octets of the whole body.
            weight: number of child contents; zero in every dialect in use.
            frame_max: octets of the largest frame allowed; 0 for no limit, None for the encoder's.

        Raises:
            EncodeError: a value its field cannot carry, or a frame over frame_max.
        """
        return self._one_header(channel, properties, body_size, weight, frame_max)

    def encode_body(self, channel: int, octets: ReadableBuffer, *, frame_max: int | None = None) -> bytes:
        """One body frame.

        Args:
            channel: 0 to 65535.
            octets: bytes-like, all of it in this frame.
            frame_max: octets of the largest frame allowed; 0 for no limit, None for the encoder's.

        Raises:
            EncodeError: not octets, or a frame over frame_max.
        """
        return self._raw_frame(BODY, channel, _view(octets), frame_max)

    def encode_message(
        self,
        channel: int,
        method: Method,
        properties: Properties | None,
        body: ReadableBuffer,
        *,
        frame_max: int | None = None,
        validate: bool = False,
    ) -> bytes:
        """A content-bearing method with its content: method frame, header frame, body frames.

        Args:
            channel: 1 to 65535.
            method: a method that carries content, such as basic.publish.
            properties: properties of the method's class; None for none.
            body: bytes-like. An empty body makes no body frame.
            frame_max: octets of the largest frame; the body is cut to it. 0 for no limit, None for the
                encoder's.
            validate: check the asserts of the specification as well.

        Returns:
            All frames, in order.

        Raises:
            EncodeError: a value its field cannot carry, or a method or header over frame_max.
        """
        return self._one_message(channel, method, properties, body, frame_max, validate)

    def encode_messages(
        self,
        messages: Iterable[tuple[int, Method, Properties | None, ReadableBuffer]],
        *,
        frame_max: int | None = None,
        validate: bool = False,
    ) -> Iterator[bytes]:
        """Encode many messages, into pieces of 64 KiB at most; a longer message is a piece of its own.

        Messages are taken from the iterable as pieces are asked for. Where one cannot be encoded, or the
        iterable raises, the messages before it are returned first, and the next call of the iterator raises.
        Nothing follows it.

        Args:
            messages: tuples of channel, method, properties and body, each as for `encode_message`.
            frame_max, validate: as for `encode_message`.

        Returns:
            An iterator over the octets, each piece of whole messages.

        Raises:
            EncodeError: as `encode_message`; its `index` says which message it is, counted from 0.
        """
        limit = self._message_limit if frame_max is None else self._payload_limit(frame_max)
        return MessagePieces(
            messages, self.encode_message, self._dialect, self._own_rules(), limit + OVERHEAD, validate
        )

    def prepare_message(
        self,
        channel: int,
        method: Method,
        properties: Properties | None = None,
        *,
        frame_max: int | None = None,
    ) -> PreparedMessage:
        """Prepare a message of which most stays the same each time, such as what a publisher sends.

        `PreparedMessage.encode` takes what differs: the body, and fields by their names. It returns what
        `encode_message` returns for a method and properties with these values, in less than half the time
        that making these takes as well.

        Args:
            channel: 1 to 65535.
            method: a method that carries content, such as basic.publish, as it is now.
            properties: properties of the method's class, as they are now; None for none.
            frame_max: as for `encode_message`.

        Raises:
            EncodeError: as `encode_message`.
        """
        limit = self._message_limit if frame_max is None else self._payload_limit(frame_max)
        return PreparedMessage(
            self.encode_message,
            self._dialect,
            self._own_rules(),
            channel,
            method,
            properties,
            limit + OVERHEAD,
        )

    def encode_message_parts(
        self,
        channel: int,
        method: Method,
        properties: Properties | None,
        body: ReadableBuffer,
        *,
        frame_max: int | None = None,
        validate: bool = False,
    ) -> list[bytes | memoryview]:
        """Encode a message as `encode_message` does, in several buffers and without a copy of the body.

        For `socket.sendmsg` or `StreamWriter.writelines`. The buffers refer to the caller's body: it
        must not change until they are sent.

        Args:
            channel, method, properties, body, frame_max, validate: as for `encode_message`.

        Raises:
            EncodeError: as `encode_message`.
        """
        octets = memoryview(_view(body))
        size = len(octets)
        limit = self._message_limit if frame_max is None else self._payload_limit(frame_max)
        writer = self._writer()
        self._put_content_start(writer, channel, method, properties, size, limit, validate)
        parts: list[bytes | memoryview] = []
        for at in range(0, size, limit):
            piece = octets[at : at + limit]
            writer.put_envelope(BODY, channel, len(piece))
            parts.append(writer.finish())
            parts.append(piece)
            writer = self._writer()
            writer.bits(FRAME_END)
        parts.append(writer.finish())
        return parts

    def encode_heartbeat(self) -> bytes:
        """A heartbeat frame."""
        return _HEARTBEAT_FRAME

    def protocol_header(self) -> bytes:
        """The eight octets with which a client of this dialect opens a connection."""
        return self._dialect.protocol_header

    def encode_frame(self, frame: Frame, *, frame_max: int | None = None) -> bytes:
        """Any frame that a decoder returns.

        With ``payloads="raw"`` it becomes the very octets it came from; with ``tables="raw"`` too, provided
        that they were in the shortest form.

        Args:
            frame: the frame.
            frame_max: octets of the largest frame allowed; 0 for no limit, None for the encoder's.

        Raises:
            EncodeError: the payload is none of the kinds listed at `Frame`, or cannot be written.
        """
        if not isinstance(frame, Frame):
            raise EncodeError(f"expected a frame, not {_named(frame)}")
        return self._any_frame(frame, frame_max)

    def encode(self, value: Message | Frame, *, frame_max: int | None = None) -> bytes:
        """Encode an item of a `MessageDecoder`: a whole message, or one frame.

        Args:
            value: the message or frame; a message's body may be a list of pieces, which are joined.
            frame_max: octets of the largest frame; 0 for no limit, None for the encoder's.

        Raises:
            EncodeError: as `encode_message` and `encode_frame`.
        """
        if isinstance(value, Message):
            if not value.complete:
                raise EncodeError("the message is not complete")
            body = b"".join(map(_view, value.body)) if isinstance(value.body, list) else value.body
            return self.encode_message(
                value.channel, value.method, value.properties, body, frame_max=frame_max
            )
        return self.encode_frame(
            value, frame_max=self._message_limit + OVERHEAD if frame_max is None else frame_max
        )

    # -- the pieces

    def _any_frame(self, frame: Frame, frame_max: int | None) -> bytes:
        """Encode any frame. Frames of decoders come first: their types are the very objects compared here."""
        payload = frame.payload
        if frame.type is _METHOD and isinstance(payload, Method):
            return self._one_method(frame.channel, payload, frame_max, False)
        if frame.type is _BODY and type(payload) is bytes:
            return self._raw_frame(BODY, frame.channel, payload, frame_max)
        if frame.type is _HEADER and isinstance(payload, ContentHeader):
            return self._header_frame(frame.channel, payload, frame_max)
        return self._other_frame(frame, payload, frame_max)

    def _other_frame(self, frame: Frame, payload: Any, frame_max: int | None) -> bytes:
        """Any frame, or the refusal of what is none."""
        if not isinstance(frame.type, int):
            raise _not_carried(frame)
        if isinstance(payload, bytes) and frame.type != BODY:
            return self._encode_raw(frame, payload, frame_max)
        if frame.type != _type_of(payload, frame.type):
            raise _not_carried(frame)
        if isinstance(payload, Method):
            return self._one_method(frame.channel, payload, frame_max, False)
        if isinstance(payload, ContentHeader):
            return self._header_frame(frame.channel, payload, frame_max)
        if isinstance(payload, OpaquePayload):
            return self._encode_opaque(frame, payload, frame_max)
        if isinstance(payload, (Heartbeat, ProtocolHeader)):
            return self._encode_connection_frame(frame, payload)
        return self._raw_frame(BODY, frame.channel, _view(payload), frame_max)

    def _one_method(self, channel: Any, method: Any, frame_max: int | None, validate: bool) -> bytes:
        limit = self._limit if frame_max is None else self._payload_limit(frame_max)
        methods = self._methods
        if methods is not None:
            octets = methods.frame(channel, method, limit, self._rules)
            if octets is not None:
                if validate:
                    method.validate()
                return octets
        writer = self._writer()
        methods.decline(method, writer)
        self._put_method(writer, channel, method, limit, validate)
        return writer.finish()

    def _one_message(
        self, channel: Any, method: Any, properties: Any, body: Any, frame_max: int | None, validate: bool
    ) -> bytes:
        fast = self._methods is not None and type(body) is bytes
        if fast:
            # The body has no other name here: threads that send the same one would wait to count it.
            limit = self._message_limit if frame_max is None else self._payload_limit(frame_max)
            frames = self._fast_message(channel, method, properties, body, limit)
            if frames is not None:
                if validate:
                    method.validate()
                return frames
        return self._slow_message(channel, method, properties, _view(body), frame_max, validate, fast)

    if PURE:

        def _fast_message(
            self, channel: Any, method: Any, properties: Any, body: bytes, limit: int
        ) -> bytes | None:
            """Return all frames of a message in one go, or None where the slow path must write them."""
            kept, kept_class = None, 0
            if type(properties) is RawProperties:
                reading = properties._reading
                if reading is not None and reading.dispatch is self._properties:
                    kept, kept_class = properties._octets, properties._class
            return self._methods.message(
                channel, method, properties, body, limit, self._rules, self._properties, kept, kept_class
            )

    def _slow_message(
        self,
        channel: Any,
        method: Any,
        properties: Any,
        octets: Any,
        frame_max: int | None,
        validate: bool,
        declined: bool,
    ) -> bytes:
        """Encode a message that is not for the fast path, or was declined by it."""
        limit = self._message_limit if frame_max is None else self._payload_limit(frame_max)
        writer = self._writer()
        if declined:
            self._methods.decline(method, writer)
        self._put_content_start(writer, channel, method, properties, len(octets), limit, validate)
        return writer.finish_with(BODY, channel, octets, limit)

    def _header_frame(self, channel: Any, header: ContentHeader, frame_max: int | None) -> bytes:
        return self._one_header(channel, header.properties, header.body_size, header.weight, frame_max)

    def _one_header(
        self, channel: Any, properties: Any, body_size: Any, weight: Any, frame_max: int | None
    ) -> bytes:
        limit = self._limit if frame_max is None else self._payload_limit(frame_max)
        contents = self._properties
        if contents is not None:
            octets = contents.header(channel, properties, body_size, weight, limit, self._rules)
            if octets is not None:
                return octets
        writer = self._writer()
        record = self._own_properties(properties)
        contents.decline(record, writer)
        written = False
        try:
            number, size = writer.weight(weight), writer.body_size(body_size)
            self._put_header(writer, channel, record, size, number, limit)
            written = True
        finally:
            if not written:
                _name(record)
        return writer.finish()

    def _own_rules(self) -> WriterRules:
        rules = self._rules
        if rules is None:  # C code must not ask it: a subclass may have left out our constructor
            raise AttributeError("this encoder was not initialised")
        return rules

    def _writer(self) -> Writer:
        """A writer with nothing written yet."""
        return self._own_rules().writer()

    def _payload_limit(self, frame_max: int) -> int:
        """Octets a frame may carry where whole frames have at most `frame_max`."""
        return self._own_rules().payload_limit(frame_max)

    def _put_method(self, writer: Writer, channel: Any, method: Any, limit: int, validate: bool) -> Method:
        """The method, now known to be one."""
        if not isinstance(method, Method):
            raise EncodeError(f"expected a method, such as Queue.Declare(), not {_named(method)}")
        # Known to be a method from here on: the .pxd gives `record` the C type that makes its calls cheap.
        record = method
        if record._module != self._dialect.module:
            raise self._foreign(record, "a method")
        if validate:
            record.validate()
        written = False
        try:
            at = writer.begin_frame(METHOD, channel)
            self._methods.write(record, writer)
            writer.end_frame(at, limit)
            written = True
        finally:
            # Not `except`, which costs something for every method even where nothing is raised.
            if not written:
                _name(record)
        return record

    def _foreign(self, record: Record, what: str) -> EncodeError:
        """The refusal of what is of another dialect, whose layout may be another."""
        names = f"{import_module(record._module).DIALECT.name}, not of {self._dialect.name}"
        return EncodeError(f"{what} of {names}", method=record.spec.name)

    def _own_properties(self, properties: Any) -> Properties:
        """The properties, now known to be that, and of the dialect."""
        if not isinstance(properties, Properties):
            raise EncodeError(f"expected properties, such as BasicProperties(), not {_named(properties)}")
        record = properties
        if record._module != self._dialect.module:
            raise self._foreign(record, "properties")
        return record

    def _put_header(
        self, writer: Writer, channel: Any, record: Properties, body_size: int, weight: int, limit: int
    ) -> None:
        """A content header, of numbers that were checked."""
        at = writer.begin_frame(HEADER, channel)
        writer.header_start(record.spec.class_id, weight, body_size)
        if isinstance(record, RawProperties):
            raw = record
            writer.octets(raw._octets)
        else:
            self._properties.write(record, writer)
        writer.end_frame(at, limit)

    def _put_content_start(
        self,
        writer: Writer,
        channel: Any,
        method: Any,
        properties: Any,
        size: int,
        limit: int,
        validate: bool,
    ) -> None:
        """Method frame and header frame of a message."""
        record = self._put_method(writer, channel, method, limit, validate)
        if not record.spec.content:
            raise EncodeError("carries no content", method=record.spec.name)
        if channel == 0:
            raise EncodeError("content does not belong on channel 0", "channel", method=record.spec.name)
        if properties is None:
            properties = self._dialect.properties[record.spec.class_id]()
        header = self._own_properties(properties)
        written = False
        try:
            self._put_header(writer, channel, header, as_unsigned(size), 0, limit)
            written = True
        finally:
            if not written:
                _name(header)
        if header.spec.class_id != record.spec.class_id:
            names = f"{header.spec.name} do not belong to it"
            raise EncodeError(f"properties of class {names}", method=record.spec.name)

    def _raw_frame(self, frame_type: int, channel: Any, octets: Any, frame_max: int | None) -> bytes:
        """One frame around octets."""
        limit = self._limit if frame_max is None else self._payload_limit(frame_max)
        writer = self._writer()
        size = len(octets)
        if size > limit:
            raise EncodeError(f"frame of {size + OVERHEAD} octets, frame_max {limit + OVERHEAD}")
        if size:
            return writer.finish_with(frame_type, channel, octets, limit)
        at = writer.begin_frame(frame_type, channel)
        writer.end_frame(at, limit)
        return writer.finish()

    def _encode_raw(self, frame: Frame, payload: bytes, frame_max: int | None) -> bytes:
        """A frame whose payload was not decoded."""
        if frame.type == PROTOCOL_HEADER:
            return self._encode_connection_frame(frame, ProtocolHeader(payload))
        if frame.type not in self._dialect.frame_types:
            raise _not_carried(frame)
        return self._raw_frame(frame.type, frame.channel, _view(payload), frame_max)

    def _encode_connection_frame(self, frame: Frame, payload: Heartbeat | ProtocolHeader) -> bytes:
        if frame.channel != 0:
            raise EncodeError(f"{type(payload).__name__} belongs on channel 0", "channel")
        if isinstance(payload, Heartbeat):
            return _HEARTBEAT_FRAME
        octets = payload.octets
        if type(octets) is not bytes or len(octets) != 8 or not octets.startswith(b"AMQP"):
            raise EncodeError("a protocol header must be 8 octets in bytes, and begin with AMQP")
        return octets

    def _encode_opaque(self, frame: Frame, payload: OpaquePayload, frame_max: int | None) -> bytes:
        if frame.type not in self._dialect.frame_types or frame.type in (METHOD, HEADER, BODY, HEARTBEAT):
            raise EncodeError(f"{self._dialect.name} has no opaque frame of type {frame.type!r}")
        return self._raw_frame(frame.type, frame.channel, _view(payload.octets), frame_max)


def _type_of(payload: Any, given: Any) -> Any:
    """The frame type that carries a payload; an opaque one is carried by the type given."""
    if isinstance(payload, Method):
        return METHOD
    if isinstance(payload, ContentHeader):
        return HEADER
    if isinstance(payload, Heartbeat):
        return HEARTBEAT
    if isinstance(payload, ProtocolHeader):
        return PROTOCOL_HEADER
    return given if isinstance(payload, OpaquePayload) else BODY


def _name(record: Record) -> None:
    """Add to an error of its fields the name of a method or of properties."""
    error = exc_info()[1]
    if isinstance(error, EncodeError):
        error.method = record.spec.name


def _not_carried(frame: Frame) -> EncodeError:
    return EncodeError(f"a frame of type {frame.type!r} does not carry {_named(frame.payload)}")


def _named(value: Any) -> str:
    """The type of what is not what it should be, and its build where that is the other one."""
    name = named(value)
    ours = _BUILDS[Frame.__module__]
    for base in type(value).__mro__:
        module = base.__module__
        if type(module) is str and _BUILDS.get(module, ours) != ours:
            theirs = _BUILDS[module]
            return f"{name} of the {theirs} build, which an encoder of the {ours} build does not take"
    return name


def _view(body: Any) -> Any:
    """Octets whose len() and slices count octets, copied only where they do not lie in one piece."""
    if type(body) is bytes:
        return body
    try:
        view = memoryview(body)
    except TypeError:
        raise EncodeError(f"a body must be bytes-like, not {type(body).__name__}", "body") from None
    return view.cast("B") if view.contiguous else view.tobytes()


quicken(Encoder)
describe([Encoder])
