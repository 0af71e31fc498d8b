"""Hypothesis strategies for all that is on the wire: tables, methods, properties, messages and streams.

    @given(strategies.streams(amqpcodec.rabbitmq))
    def test_a_reader_takes_octets_that_are_cut_anywhere(stream):
        decoder = amqpcodec.rabbitmq.MessageDecoder()
        assert [item for piece in stream.pieces for item in decoder.feed(piece)] == list(stream.items)

Each takes the module of a dialect, such as `amqpcodec.rabbitmq`. The values drawn are those that an encoder
takes and a decoder gives back equal. Needs Hypothesis.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st

from .. import Frame, Heartbeat, Message
from .. import profiles as wire
from ..types import EPOCH, InlineContent, ReferenceContent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .. import Method, Properties
    from ..spec import FieldSpec

__all__ = [
    "Stream",
    "broken_streams",
    "messages",
    "methods",
    "pieces",
    "properties",
    "streams",
    "tables",
    "values",
]


class Stream(NamedTuple):
    """Octets that a peer might send, and what is in them.

    Attributes:
        items: what a `MessageDecoder` makes of them, in order: messages, and frames of methods without
            content and of heartbeats. For a stream that is broken: of the octets before they were.
        pieces: the octets, cut anywhere, as reads of a socket give them. A piece may be empty.
    """

    items: tuple[Frame | Message, ...]
    pieces: tuple[bytes, ...]

    @property
    def octets(self) -> bytes:
        """All octets."""
        return b"".join(self.pieces)


def _signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def _unsigned(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << bits) - 1)


# Text of a short string: no more than 255 octets. Hypothesis gives up an example that draws too much, so long
# texts are made of a number.
_SHORT_TEXT = st.text(max_size=20) | st.integers(0, 255).map("x".__mul__) | st.just("x" * 255)
_LAST_SECOND = 253402300799  # of the year 9999, where datetime ends
_MOMENTS = st.integers(0, _LAST_SECOND).map(lambda seconds: EPOCH + timedelta(seconds=seconds))
_DECIMALS = st.builds(
    lambda scale, mantissa: Decimal((mantissa < 0, tuple(map(int, str(abs(mantissa)))), -scale)),
    _unsigned(8),
    _signed(32),
)
_BY_KIND: dict[int, st.SearchStrategy[Any]] = {
    wire.BOOL: st.booleans(),
    wire.INT32: _signed(32),
    wire.INT64: _signed(64),
    wire.DOUBLE: st.floats(allow_nan=False),
    wire.DECIMAL: _DECIMALS,
    wire.LONGSTR: st.text(max_size=30),
    wire.OCTETS: st.binary(max_size=30),
    wire.TIMESTAMP: _MOMENTS,
    wire.VOID: st.none(),
}
_BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "bit": st.booleans(),
    "octet": _unsigned(8),
    "short": _unsigned(16),
    "long": _unsigned(32),
    "longlong": _unsigned(64),
    "timestamp": _MOMENTS,
    "shortstr": _SHORT_TEXT,
    "longstr": st.binary(max_size=30),
    "content": st.binary(max_size=30).map(InlineContent) | st.binary(max_size=30).map(ReferenceContent),
}


def _profile(dialect: ModuleType, profile: str | None) -> wire.TableProfile:
    return dialect.DIALECT.profile if profile is None else wire.table_profile(profile)


def values(dialect: ModuleType, *, profile: str | None = None) -> st.SearchStrategy[Any]:
    """Draw values of a field table: bool, int, float, Decimal, str, bytes, datetime, None, list, dict.

    Args:
        dialect: the module of a dialect.
        profile: name of a table profile; None for the dialect's own. What it cannot carry is not drawn.
    """
    spoken = _profile(dialect, profile)
    kinds = set(spoken.tags.values())
    finite = st.floats(allow_nan=False, allow_infinity=False)
    by_kind = _BY_KIND | {wire.DOUBLE: finite} if spoken.finite else _BY_KIND
    scalars = st.one_of([strategy for kind, strategy in by_kind.items() if kind in kinds])

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        tables_of = st.dictionaries(_SHORT_TEXT, inner, max_size=3)
        return st.lists(inner, max_size=3) | tables_of if wire.ARRAY in kinds else tables_of

    return scalars | st.recursive(scalars, nested, max_leaves=6)


def tables(dialect: ModuleType, *, profile: str | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Draw field tables of up to four entries, with tables and arrays inside.

    Args:
        dialect, profile: as for `values`.
    """
    return st.dictionaries(_SHORT_TEXT, values(dialect, profile=profile), max_size=4)


def methods(
    dialect: ModuleType, *names: str, profile: str | None = None, validate: bool = False
) -> st.SearchStrategy[Method]:
    """Draw methods with any arguments that their fields can carry.

    Args:
        dialect, profile: as for `values`.
        names: of methods or classes, such as ``"basic.publish"`` or ``"queue"``; none for all methods.
        validate: draw only arguments that the asserts of the specification allow.

    Raises:
        ValueError: the dialect has nothing of that name.
    """
    known = {cls.spec.name: cls for cls in dialect.METHODS.values()}
    chosen = {
        name: cls for name, cls in known.items() if not names or {name, name.split(".")[0]} & set(names)
    }
    for name in names:
        if not any(name in (method, method.split(".")[0]) for method in chosen):
            raise ValueError(f"{dialect.DIALECT.name} has no method or class {name!r}")
    inner = tables(dialect, profile=profile)
    return st.one_of(
        [st.builds(cls, **_arguments(cls.spec.fields, inner, validate)) for cls in chosen.values()]
    )


def _arguments(
    fields: Sequence[FieldSpec], inner: st.SearchStrategy[dict[str, Any]], validate: bool
) -> dict[str, st.SearchStrategy[Any]]:
    return {field.attribute: _argument(field, inner, validate) for field in fields}


def _argument(
    field: FieldSpec, inner: st.SearchStrategy[dict[str, Any]], validate: bool
) -> st.SearchStrategy[Any]:
    strategy = inner if field.type == "table" else _BY_TYPE[field.type]
    if not validate or not field.asserts:
        return strategy
    for check in field.asserts:
        if check.check == "regexp":  # few texts pass by chance
            strategy = st.from_regex(check.value, fullmatch=True)
    return strategy.filter(lambda value: all(check.holds(value) for check in field.asserts))


def properties(
    dialect: ModuleType, content_class: str = "basic", *, profile: str | None = None
) -> st.SearchStrategy[Properties]:
    """Draw properties of a content header, each of which may be absent.

    Args:
        dialect, profile: as for `values`.
        content_class: ``"basic"``, or another class with content.

    Raises:
        ValueError: the dialect has no content of that class.
    """
    for cls in dialect.PROPERTIES.values():
        if cls.spec.name == content_class:
            given = _arguments(cls.spec.fields, tables(dialect, profile=profile), False)
            return st.builds(cls, **{name: st.none() | strategy for name, strategy in given.items()})
    raise ValueError(f"{dialect.DIALECT.name} has no content of class {content_class!r}")


def messages(
    dialect: ModuleType,
    *names: str,
    channels: st.SearchStrategy[int] | None = None,
    max_size: int = 100,
    profile: str | None = None,
) -> st.SearchStrategy[Message]:
    """Draw messages: a method that carries content, its properties, and a body.

    Args:
        dialect, profile: as for `values`.
        names: of methods with content, such as ``"basic.publish"``; none for all of them.
        channels: channel numbers; 1 to 65535 where it is None.
        max_size: octets of the longest body.

    Raises:
        ValueError: the dialect has no method with content of that name.
    """
    known = [cls.spec.name for cls in dialect.METHODS.values() if cls.spec.content]
    if unknown := set(names).difference(known):
        raise ValueError(f"{dialect.DIALECT.name} has no method with content {sorted(unknown)[0]!r}")
    return st.one_of(
        [
            st.builds(
                Message,
                st.integers(1, 65535) if channels is None else channels,
                methods(dialect, name, profile=profile),
                properties(dialect, name.split(".")[0], profile=profile),
                st.binary(max_size=min(20, max_size)) | st.integers(0, max_size).map(_body),
            )
            for name in names or known
        ]
    )


def _body(size: int) -> bytes:
    return bytes(place % 251 for place in range(size))


def pieces(octets: bytes, *, max_cuts: int = 10) -> st.SearchStrategy[tuple[bytes, ...]]:
    """Draw ways of cutting octets: pieces that make them up, some of them empty.

    Args:
        octets: what to cut.
        max_cuts: the most cuts.
    """

    def cut(places: list[int]) -> tuple[bytes, ...]:
        places.sort()
        return tuple(octets[a:b] for a, b in zip([0, *places], [*places, len(octets)], strict=True))

    return st.lists(st.integers(0, len(octets)), max_size=max_cuts).map(cut)


def streams(
    dialect: ModuleType, *, max_items: int = 6, max_size: int = 100, profile: str | None = None
) -> st.SearchStrategy[Stream]:
    """Draw streams of frames: messages and methods on up to three channels, and heartbeats.

    Bodies come in frames of any size, and the frames of one channel between those of another.

    Args:
        dialect, profile: as for `values`.
        max_items: the most messages and methods.
        max_size: octets of the longest body.
    """
    items = st.lists(_items(dialect, st.integers(1, 3), max_size, profile), max_size=max_items)
    return _mixed(dialect, items, profile)


@st.composite
def _mixed(
    draw: st.DrawFn, dialect: ModuleType, items: st.SearchStrategy[list[Any]], profile: str | None
) -> Stream:
    encoder = dialect.Encoder(profile=profile)
    waiting: dict[int, list[_Framed]] = {}
    for item in draw(items):
        waiting.setdefault(item.channel, []).extend(_frames(draw, dialect, encoder, item))
    turns = [channel for channel, frames in waiting.items() for _ in frames]
    order = [waiting[channel].pop(0) for channel in draw(st.permutations(turns))]
    octets = b"".join(frame for _, frame in order)
    complete = tuple(item for item, _ in order if item is not None)
    return Stream(complete, draw(pieces(octets)))


# A frame's octets, and the item that is complete with it.
_Framed = tuple[Frame | Message | None, bytes]


def _items(
    dialect: ModuleType, channels: st.SearchStrategy[int], max_size: int, profile: str | None
) -> st.SearchStrategy[Any]:
    def framed(method: Method) -> st.SearchStrategy[Frame]:
        number = st.just(0) if method.spec.name.startswith("connection.") else channels
        return st.builds(Frame, st.just(dialect.FRAME_METHOD), number, st.just(method))

    plain = [cls.spec.name for cls in dialect.METHODS.values() if not cls.spec.content]
    kinds = [
        messages(dialect, channels=channels, max_size=max_size, profile=profile),
        methods(dialect, *plain, profile=profile).flatmap(framed),
        st.just(Frame(dialect.FRAME_HEARTBEAT, 0, Heartbeat())),
    ]
    # Not `one_of`, which would make messages as rare as they are among all methods.
    return st.sampled_from([0, 0, 1, 2]).flatmap(kinds.__getitem__)


def _frames(draw: st.DrawFn, dialect: ModuleType, encoder: Any, item: Frame | Message) -> list[_Framed]:
    if isinstance(item, Frame):
        heartbeat = item.type == dialect.FRAME_HEARTBEAT
        octets = (
            dialect.encode_heartbeat() if heartbeat else encoder.encode_method(item.channel, item.payload)
        )
        return [(item, octets)]
    body = bytes(item.body)  # type: ignore[arg-type]  # `messages` draws bytes alone
    frames = [
        encoder.encode_method(item.channel, item.method),
        encoder.encode_header(item.channel, item.properties, len(body)),
        *(encoder.encode_body(item.channel, part) for part in draw(pieces(body, max_cuts=2)) if part),
    ]
    return [*((None, frame) for frame in frames[:-1]), (item, frames[-1])]


def broken_streams(
    dialect: ModuleType, *, max_items: int = 6, max_size: int = 100, profile: str | None = None
) -> st.SearchStrategy[Stream]:
    """Draw streams with up to three faults: octets changed, lost, doubled or put in.

    A fault inside a body or a text may leave a stream that can be read.

    Args:
        dialect, profile, max_items, max_size: as for `streams`.
    """
    whole = streams(dialect, max_items=max_items, max_size=max_size, profile=profile)
    return whole.filter(lambda stream: stream.octets).flatmap(_broken)


@st.composite
def _broken(draw: st.DrawFn, stream: Stream) -> Stream:
    octets = stream.octets
    for damage in draw(st.lists(st.sampled_from(_DAMAGES), min_size=1, max_size=3)):
        begin = draw(st.integers(0, max(0, len(octets) - 1)))
        end = min(len(octets), begin + draw(st.integers(1, 8)))
        octets = octets[:begin] + damage(draw, octets[begin:end]) + octets[end:]
    return Stream(stream.items, draw(pieces(octets)))


def _changed(draw: st.DrawFn, octets: bytes) -> bytes:
    return bytes(octet ^ draw(st.integers(1, 255)) for octet in octets)


def _put_in(draw: st.DrawFn, octets: bytes) -> bytes:
    return draw(st.binary(min_size=1, max_size=8)) + octets


_DAMAGES: list[Callable[[st.DrawFn, bytes], bytes]] = [
    _changed,
    _put_in,
    lambda draw, octets: b"",
    lambda draw, octets: octets * 2,
]
