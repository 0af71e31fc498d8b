"""The exceptions of the codec: one tree under `AmqpError`.

    AmqpError
    +-- DecodeError (also a ValueError)     octets that do not follow the protocol
    +-- EncodeError (also a ValueError)     values that the protocol cannot carry
    +-- DecoderInUseError (also a RuntimeError)  one decoder entered twice at once
    +-- LocalProtocolError (also a RuntimeError)  a call that would break the protocol
    +-- ConnectionLostError (also a ConnectionResetError)  a connection that ended without a close
    +-- UnknownReleaseError (also an ImportError)  another library whose release is not known
    +-- ReplyError                          what a peer says with a reply code
        +-- AmqpNotFound, AmqpFrameError    one class per reply code: `amqpcodec.reply_errors`

Octets that merely have not arrived yet are never an error.
"""

from __future__ import annotations

from importlib import import_module

from ._protocol.codes import COMMAND_INVALID, REPLY_NAMES, SOFT, SYNTAX_ERROR
from ._typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Literal

    from ._kernel.dialect_py import Dialect
    from ._kernel.records_py import Method

# What an error has beside its constructor's positional arguments.
_DETAILS = ("dialect", "method", "field", "fatal", "channel", "class_id", "method_id")


class AmqpError(Exception):
    """Root of everything this package raises on purpose. The text of each can be printed."""

    def __str__(self) -> str:
        return printable(super().__str__())


class DecodeError(AmqpError, ValueError):
    """Octets from the wire that break the protocol.

    Attributes:
        message: what is wrong, without its place.
        reply_code: the AMQP reply code a peer would be sent (501, 502, ...).
        reply_name: that code's name, such as ``"syntax-error"``.
        closes: ``"connection"`` or ``"channel"``: what the code closes.
        offset: octets from the start of the stream to the fault.
        channel: the channel of the frame at fault; 0 where the connection is meant, as by octets that are
            no frame.
        class_id: the class of the method or content header at fault, also if it is not known. For content
            out of order or too large, that of the method that the content belongs to. Else 0.
        method_id: the method at fault, in the same way; 0 for a content header on its own.
        dialect: name of the dialect the octets were read as.
        method: ``"basic.deliver"`` for a method, ``"basic"`` for a content header, else None.
        field: name of the method argument or property being read, else None.
        fatal: True when the end of the frame can no longer be trusted, so that nothing
            after it can be read; False when `FrameDecoder.skip_frame` may go on.
    """

    def __init__(
        self,
        message: str,
        reply_code: int = SYNTAX_ERROR,
        offset: int = 0,
        *,
        dialect: str | None = None,
        method: str | None = None,
        field: str | None = None,
        fatal: bool = False,
        channel: int = 0,
        class_id: int = 0,
        method_id: int = 0,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reply_code = reply_code
        self.offset = offset
        self.dialect = dialect
        self.method = method
        self.field = field
        self.fatal = fatal
        self.channel = channel
        self.class_id = class_id
        self.method_id = method_id
        # The decoder's dialect; its module's path once the error was pickled; None if no decoder raised it.
        self._definition: Dialect | str | None = None

    @property
    def reply_name(self) -> str:
        """Name of the reply code, such as ``"frame-error"``."""
        return REPLY_NAMES.get(self.reply_code, "reply-code")

    @property
    def closes(self) -> Literal["channel", "connection"]:
        """Return what the reply code closes: ``"channel"`` if it is soft, ``"connection"`` if hard."""
        return "channel" if self.reply_code in SOFT else "connection"

    def close_method(self) -> Method:
        """The method to answer the peer with.

        Returns:
            channel.close for a soft reply code, to be sent on channel `channel`; connection.close for a hard
            one, as of every framing error, to be sent on channel 0. It is of the dialect and build of the
            decoder that raised the error, and has the error's reply code, its text and its ids.

        Raises:
            ValueError: the error is of no dialect, or of one that has no such method.

        Source: 0-9-1 sections 4.8 and 4.10.
        """
        text = f"{self.reply_name.upper().replace('-', '_')} - {self.message}"
        octets = text.encode("utf-8", "backslashreplace")[:255]  # a shortstr
        close: Any = _method_class(self._spoken(), f"{self.closes}.close")
        method: Method = close(
            reply_code=self.reply_code,
            reply_text=octets.decode("utf-8", "ignore"),
            class_id=self.class_id,
            method_id=self.method_id,
        )
        return method

    def _spoken(self) -> Dialect:
        """The dialect that the octets were read as."""
        definition = self._definition
        if definition is None:
            if self.dialect is None:
                raise ValueError("the error is of no dialect, so there is no method for it")
            definition = import_module(__package__).dialect(self.dialect).DIALECT
        elif isinstance(definition, str):
            definition = import_module(definition).DIALECT
        spoken: Dialect = definition
        return spoken

    def __str__(self) -> str:
        where = _dotted(self.method, self.field)
        place = f"{where}, " if where else ""
        dialect = f", {self.dialect}" if self.dialect else ""
        code = f"{self.reply_code} {self.reply_name}"
        return printable(f"{self.message} ({place}offset {self.offset}{dialect}, {code})")

    def __reduce__(self) -> tuple[object, ...]:
        state = {name: getattr(self, name) for name in _DETAILS}
        definition = self._definition
        state["_definition"] = getattr(definition, "module", definition)
        return type(self), (self.message, self.reply_code, self.offset), state

    def __copy__(self) -> DecodeError:
        return self.again()

    def again(self) -> DecodeError:
        """A fresh copy, for raising the same error once more without a growing traceback."""
        copy = type(self)(self.message, self.reply_code, self.offset)
        for name in _DETAILS:
            setattr(copy, name, getattr(self, name))
        copy._definition = self._definition
        return copy


class EncodeError(AmqpError, ValueError):
    """A value that cannot be put on the wire. Raised before any octet is returned.

    Attributes:
        message: what is wrong, without its place.
        method: ``"basic.publish"`` for a method, ``"basic"`` for properties, else None.
        field: name of the method argument or property, else None.
        path: keys and indexes that lead to the value inside a field table, outermost first.
        index: which of the messages of `encode_messages` it is, counted from 0; else None.
    """

    def __init__(
        self,
        message: str,
        field: str | None = None,
        *,
        method: str | None = None,
        path: tuple[str | int, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.method = method
        self.field = field
        self.path = path
        self.index: int | None = None

    def __str__(self) -> str:
        keys = "".join(f"[{_shown_key(key)}]" for key in self.path)
        where = _dotted(self.method, self.field) + keys
        text = f"{where}: {self.message}" if where else self.message
        return printable(text if self.index is None else f"message {self.index}: {text}")

    def __reduce__(self) -> tuple[object, ...]:
        state = {"method": self.method, "path": self.path, "index": self.index}
        return type(self), (self.message, self.field), state


class DecoderInUseError(AmqpError, RuntimeError):
    """A decoder was entered while it was already decoding: by a second thread, or from a callback.

    In the pure build an interrupt may also have broken off a call; `reset` makes the decoder of use again.
    """


class LocalProtocolError(AmqpError, RuntimeError):
    """A call of `amqpcodec.connection.Connection` that would break the protocol: nothing is sent.

    Attributes:
        message: what is wrong.
        reply_code: the code that a peer would be sent for it, such as 504 for a channel that is not open.
        channel: the channel, 0 for the connection.
    """

    def __init__(self, message: str, reply_code: int = COMMAND_INVALID, channel: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.reply_code = reply_code
        self.channel = channel

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.reply_code, self.channel)


class ConnectionLostError(AmqpError, ConnectionResetError):
    """A connection ended without a close of the peer, or did not come about in time.

    It is an OSError as well: a peer that is down behind a proxy looks like one that is down.
    """


class UnknownReleaseError(AmqpError, ImportError):
    """Another library cannot be accelerated whole, as was asked for: some of its source is not known."""


class ReplyError(AmqpError):
    """A reply code as an exception, for clients and brokers to raise and catch.

    Attributes:
        code: the reply code (class attribute of each subclass).
        name: its name, such as ``"not-found"``.
        closes: ``"channel"`` for a soft error, ``"connection"`` for a hard one.
        class_id, method_id: the method that the peer names as the cause; 0 where it names none.
    """

    code: int = 0
    name: str = ""
    closes: str = "connection"
    class_id: int = 0
    method_id: int = 0


def printable(text: str) -> str:
    """Return a text for people: octets of the wire that are not UTF-8 are question marks.

    Peers cut reply texts at 255 octets, often within a character. Wire values keep such octets as lone
    surrogates, which cannot be printed.
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _method_class(dialect: Dialect, name: str) -> type[Method]:
    for cls in dialect.methods.values():
        if cls.spec.name == name:
            return cls
    raise ValueError(f"{dialect.name} has no method {name}")


def _shown_key(key: object) -> str:
    """A key as errors show it; one that is no str, nor an index, may have any repr or none."""
    if type(key) is str or (type(key) is int and key.bit_length() <= 64):
        return repr(key)
    return f"<{type(key).__name__}>"


def _dotted(method: str | None, field: str | None) -> str:
    return ".".join(part for part in (method, field) if part)


__all__ = [
    "AmqpError",
    "ConnectionLostError",
    "DecodeError",
    "DecoderInUseError",
    "EncodeError",
    "LocalProtocolError",
    "ReplyError",
    "UnknownReleaseError",
]
