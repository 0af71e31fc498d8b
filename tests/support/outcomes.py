"""What a decoder or encoder did, in a form that can be compared across builds and types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from amqpcodec import DecodeError, EncodeError


def describe(value: Any) -> Any:
    """A value with the types of all its parts, so that 1, True and 1.0 differ, and NaN equals NaN."""
    return _form(type(value))(value)


@cache
def _form(kind: type) -> Callable[[Any], Any]:
    """How values of a type are described, which is found out once: tests describe millions."""
    name = kind.__name__
    if name == "UnreadableTable":
        return lambda value: (name, value.octets, describe_error(value.error))
    if issubclass(kind, dict):
        return lambda value: (
            name, tuple([(describe(key), describe(item)) for key, item in value.items()])
        )  # fmt: skip
    if issubclass(kind, (list, tuple)):
        return lambda value: (name, tuple([describe(item) for item in value]))
    if name == "RawTable":
        return lambda value: (name, value.octets, value.profile)
    if hasattr(kind, "spec"):
        if hasattr(kind.spec, "fields"):
            names = [field.attribute for field in kind.spec.fields]
            return lambda value: (name, _attributes(value, names))
        # One class of raw properties serves all content classes.
        return lambda value: (name, _attributes(value, [field.attribute for field in value.spec.fields]))
    if name in ("Frame", "ContentHeader", "Message"):
        return lambda value: (name, tuple([describe(getattr(value, part)) for part in kind.__match_args__]))
    return lambda value: (name, repr(value))


def _attributes(value: Any, names: list[str]) -> tuple[Any, ...]:
    return tuple([(name, describe(getattr(value, name))) for name in names])


FATAL = 11  # where the description of a DecodeError says whether it is fatal


def describe_error(error: BaseException) -> tuple[Any, ...]:
    """Everything that a caller can see of an exception."""
    before = None if error.__suppress_context__ else error.__context__
    seen: tuple[Any, ...] = (type(error).__name__, shown(error), error.args)
    if isinstance(error, DecodeError):
        seen += (
            error.message, error.reply_code, error.reply_name, error.closes, error.offset, error.dialect,
            error.method, error.field, error.fatal, error.channel, error.class_id, error.method_id,
        )  # fmt: skip
    elif isinstance(error, EncodeError):
        seen += (error.message, error.method, error.field, error.path)
    return (*seen, type(before).__name__, type(error.__cause__).__name__)  # a traceback shows the last two


def shown(error: BaseException) -> str:
    try:
        return str(error)
    except ValueError as cause:
        return f"not to be shown: {cause}"


def drain(decoder: Any, chunks: Iterable[bytes]) -> tuple[list[Any], DecodeError | None]:
    """Feed a decoder; returns all its values, and the error that stopped it, if any."""
    values: list[Any] = []
    try:
        for chunk in chunks:
            # One by one: an error must not lose the values before it.
            for value in decoder.feed(chunk):
                values.append(value)
    except DecodeError as error:
        return values, error
    return values, None


def error_of(decoder: Any, *chunks: bytes) -> DecodeError:
    """Return the error that decoding ends with; there has to be one."""
    error = drain(decoder, chunks)[1]
    assert error is not None
    return error


def decoding(decoder: Any, chunks: Iterable[bytes]) -> tuple[Any, ...]:
    """All that can be seen of a decoder that was fed: values, error, and where it stands."""
    values, error = drain(decoder, chunks)
    seen = None if error is None else describe_error(error)
    return [describe(value) for value in values], seen, decoder.pending, decoder.offset


def octet_by_octet(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def encoding(encode: Callable[..., bytes], *arguments: Any) -> tuple[Any, ...]:
    """Octets, or the exception."""
    try:
        return "octets", encode(*arguments)
    except Exception as error:
        return describe_error(error)
