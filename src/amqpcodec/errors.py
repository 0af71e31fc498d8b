"""The exceptions of the codec: one tree under `AmqpError`.

    AmqpError
    +-- DecodeError (also a ValueError)     octets that do not follow the protocol
    +-- EncodeError (also a ValueError)     values that the protocol cannot carry
    +-- DecoderInUseError (also a RuntimeError)  one decoder entered twice at once
    +-- UnknownReleaseError (also an ImportError)  another library whose release is not known
    +-- ReplyError                          what a peer says with a reply code
        +-- AmqpNotFound, AmqpFrameError    one class per reply code, see `reply_errors`

Octets that merely have not arrived yet are never an error.
"""

from __future__ import annotations

FRAME_ERROR = 501
SYNTAX_ERROR = 502
COMMAND_INVALID = 503
CHANNEL_ERROR = 504
UNEXPECTED_FRAME = 505
RESOURCE_ERROR = 506
NOT_IMPLEMENTED = 540
CONTENT_TOO_LARGE = 311

_REPLY_NAMES = {
    FRAME_ERROR: "frame-error",
    SYNTAX_ERROR: "syntax-error",
    COMMAND_INVALID: "command-invalid",
    CHANNEL_ERROR: "channel-error",
    UNEXPECTED_FRAME: "unexpected-frame",
    RESOURCE_ERROR: "resource-error",
    NOT_IMPLEMENTED: "not-implemented",
    CONTENT_TOO_LARGE: "content-too-large",
}


class AmqpError(Exception):
    """Root of everything this package raises on purpose."""


class DecodeError(AmqpError, ValueError):
    """Octets from the wire that break the protocol.

    Attributes:
        message: what is wrong, without its place.
        reply_code: the AMQP reply code a peer would be sent (501, 502, ...).
        reply_name: that code's name, such as ``"syntax-error"``.
        closes: ``"connection"`` or ``"channel"``: what the code closes.
        offset: octets from the start of the stream to the fault.
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
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reply_code = reply_code
        self.offset = offset
        self.dialect = dialect
        self.method = method
        self.field = field
        self.fatal = fatal

    @property
    def reply_name(self) -> str:
        """Name of the reply code, such as ``"frame-error"``."""
        return _REPLY_NAMES.get(self.reply_code, "reply-code")

    @property
    def closes(self) -> str:
        """What the reply code closes: ``"connection"``, or ``"channel"`` for the soft codes below 320."""
        return "channel" if self.reply_code < 320 else "connection"

    def __str__(self) -> str:
        where = _dotted(self.method, self.field)
        place = f"{where}, " if where else ""
        dialect = f", {self.dialect}" if self.dialect else ""
        return f"{self.message} ({place}offset {self.offset}{dialect}, {self.reply_code} {self.reply_name})"

    def __reduce__(self) -> tuple[object, ...]:
        state = {key: getattr(self, key) for key in ("dialect", "method", "field", "fatal")}
        return type(self), (self.message, self.reply_code, self.offset), state

    def again(self) -> DecodeError:
        """A fresh copy, for raising the same error once more without a growing traceback."""
        copy = type(self)(self.message, self.reply_code, self.offset)
        copy.dialect, copy.method, copy.field, copy.fatal = self.dialect, self.method, self.field, self.fatal
        return copy


class EncodeError(AmqpError, ValueError):
    """A value that cannot be put on the wire. Raised before any octet is returned.

    Attributes:
        message: what is wrong, without its place.
        method: ``"basic.publish"`` for a method, ``"basic"`` for properties, else None.
        field: name of the method argument or property, else None.
        path: keys and indexes that lead to the value inside a field table, outermost first.
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

    def __str__(self) -> str:
        keys = "".join(f"[{_shown_key(key)}]" for key in self.path)
        where = _dotted(self.method, self.field) + keys
        return f"{where}: {self.message}" if where else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.field), {"method": self.method, "path": self.path}


class DecoderInUseError(AmqpError, RuntimeError):
    """A decoder was entered while it was already decoding: by a second thread, or from a callback.

    In the pure build an interrupt may also have broken off a call; `reset` makes the decoder of use again.
    """


class UnknownReleaseError(AmqpError, ImportError):
    """Another library cannot be accelerated: its files are not those of a release that is known."""


class ReplyError(AmqpError):
    """A reply code as an exception, for clients and brokers to raise and catch.

    Attributes:
        code: the reply code (class attribute of each subclass).
        name: its name, such as ``"not-found"``.
        closes: ``"channel"`` for a soft error, ``"connection"`` for a hard one.
    """

    code: int = 0
    name: str = ""
    closes: str = "connection"


def _shown_key(key: object) -> str:
    """A key as errors show it; one that is no str, nor an index, may have any repr or none."""
    if type(key) is str or (type(key) is int and key.bit_length() <= 64):
        return repr(key)
    return f"<{type(key).__name__}>"


def _dotted(method: str | None, field: str | None) -> str:
    return ".".join(part for part in (method, field) if part)
