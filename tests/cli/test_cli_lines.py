"""Lines of frames: both builds write those that a form makes itself, the compiled one by a fast path."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import share
from support.implementation import Implementation

import amqpcodec
from amqpcodec import ContentHeader, Frame, OpaquePayload
from amqpcodec import rabbitmq as amqp
from amqpcodec.capture import CapturedFrame, Connection, Endpoint, Fault
from amqpcodec.cli.forms import Form
from amqpcodec.cli.jsonline import JsonLines
from amqpcodec.cli.textline import TextLines

NOON = 1_795_348_800_000_000_000  # 2026-11-22 12:00 UTC
HERE = Connection(3, Endpoint(bytes(4), 40000), Endpoint(bytes(16), 5672), "rabbitmq-0-9-1")
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FORMS: dict[str, Callable[..., Form]] = {
    "text": lambda octets=64: TextLines(False, octets, False),
    "coloured": lambda octets=64: TextLines(True, octets, False),
    "jsonl": lambda octets=64: JsonLines('a "file".pcap', octets, False, messages=False),
}


def frame(kind: int, payload: Any, channel: int = 1, **where: Any) -> CapturedFrame:
    """A frame as it is read from a capture."""
    size = len(payload) if kind == BODY else 40
    item = CapturedFrame(HERE, 0, 7, NOON, 1000, size, b"", Frame(kind, channel, payload), "rabbitmq-0-9-1")
    return item._replace(**where)


def header(**properties: Any) -> CapturedFrame:
    return frame(HEADER, ContentHeader(amqp.BasicProperties(**properties), 378))


def publish(routing_key: str = "a.b", **arguments: Any) -> CapturedFrame:
    return frame(METHOD, amqp.Basic.Publish(exchange="events", routing_key=routing_key, **arguments))


def written(build: Implementation, form: Form, *items: Any) -> str:
    """What a build makes of items."""
    lines = build.cli("lines").Lines(form)
    assert [lines.add(item) for item in items] == list(range(1, len(items) + 1))
    text: str = lines.take()
    assert lines.take() == ""
    return text


COMMON = [
    publish(),
    publish("it is \"quoted\" by 'both'"),
    frame(METHOD, amqp.Basic.Ack(delivery_tag=2**64 - 1, multiple=True)),
    frame(METHOD, amqp.Connection.TuneOk()),
    frame(METHOD, amqp.Channel.CloseOk(), 65535),
    header(),
    header(content_type="text/plain", priority=0, timestamp=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    header(headers={"x": {"deep": [1, -1, True, {}]}, "text": "é\x7f\\", "": "x" * 300, "'": "'"}),
    frame(BODY, b"plain"),
    frame(BODY, b"it's"),
    frame(BODY, "süß".encode()),
    frame(BODY, b"\0\xff" * 40),
    frame(BODY, b"x" * 100),
    frame(BODY, b""),
]
RARE = [
    publish(reserved_1=5),
    frame(METHOD, amqp.Connection.StartOk(response=b"\0guest\0guest")),
    frame(METHOD, amqp.Connection.SecureOk(response=b"secret")),
    frame(BODY, type("Body", (bytes,), {})(b"of a class of its own")),
    frame(HEARTBEAT, amqpcodec.Heartbeat()),
    frame(4, OpaquePayload(b"out of band"), octets=b"\x04\0\x01\0\0\0\x0bout of band\xce"),
    Fault("gap", "3 octets are missing", HERE, 1, 9, NOON, 17, 3),
    Fault("file", "the last record is cut off"),
]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("item", COMMON + RARE, ids=lambda item: type(getattr(item, "frame", item)).__name__)
def test_a_line_is_that_of_its_form(impl: Implementation, name: str, item: Any) -> None:
    for body_bytes in (64, 3, 0):
        form = FORMS[name](body_bytes)
        assert written(impl, form, item) == form.line(item)


def test_a_frame_that_is_none_of_these_is_shown_by_its_octets(impl: Implementation) -> None:
    out_of_band = next(item for item in RARE if item.octets)
    assert written(impl, FORMS["text"](), out_of_band).endswith("  oob-method 40 bytes 'out of band'\n")


class Counted(TextLines):
    """Counts the lines that it makes itself."""

    made = 0

    def line(self, item: Any) -> str:
        self.made += 1
        return super().line(item)


def test_only_what_is_not_common_is_left_to_the_form(both: tuple[Implementation, Implementation]) -> None:
    compiled, pure = both
    form = Counted(False, 64, False)
    expected = "".join(TextLines(False, 64, False).line(item) for item in COMMON + RARE)
    assert written(compiled, form, *COMMON) + written(compiled, form, *RARE) == expected
    assert form.made == len(RARE)
    assert written(pure, form, *COMMON, *RARE) == expected


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=300), st.binary(max_size=9),
    st.text("ab'\"\\ ~\x7f\x1f", max_size=20),
    st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=1))])),
    st.datetimes(timezones=st.just(UTC)).map(lambda moment: moment.replace(microsecond=0)),
    st.decimals(allow_nan=False), st.builds(amqpcodec.FieldValue, st.just("b"), st.integers(-9, 9)),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=share(50))
@given(VALUES, st.binary(max_size=80) | st.text(max_size=20).map(str.encode), st.integers(0, 70))
def test_any_value_is_written_as_its_form_shows_it(
    both: tuple[Implementation, Implementation], value: Any, body: bytes, body_bytes: int
) -> None:
    items = header(headers={"value": value}, app_id=value), publish(value), frame(BODY, body)
    for make in FORMS.values():
        expected = "".join(map(make(body_bytes).line, items)).encode("utf-8", "surrogatepass")
        for build in both:
            assert written(build, make(body_bytes), *items).encode("utf-8", "surrogatepass") == expected


def test_tables_nested_as_deep_as_they_may_be(impl: Implementation) -> None:
    value: Any = "end"
    for _ in range(120):
        value = {"inside": [value]}
    for make in FORMS.values():
        item = header(headers=value)
        assert written(impl, make(), item) == make().line(item)


def test_what_lines_begin_with_changes_with_each_thing_it_is_made_of(impl: Implementation) -> None:
    item = publish()
    other = Connection(4, None, None, None)
    changes = [
        {}, {"time_ns": NOON + 1}, {"packet": 8}, {"direction": 1}, {"connection": other},
        {"time_ns": None, "packet": None}, {"offset": 2**40}, {"size": 1}, {"dialect": "amqp-0-9-1"},
    ]  # fmt: skip
    items = [item._replace(**change) for each in changes for change in ({}, each)]
    for make in FORMS.values():
        assert written(impl, make(), *items) == "".join(map(make().line, items))


def test_more_channels_than_outlines_are_kept(impl: Implementation) -> None:
    items = [frame(METHOD, amqp.Basic.Qos(), channel) for channel in (*range(4200), 1)]
    assert written(impl, FORMS["text"](), *items) == "".join(map(FORMS["text"]().line, items))


@pytest.mark.parametrize(
    ("interrupted", "item"),
    [("fault", RARE[-1]), ("begin", publish()._replace(packet=9)), ("body", frame(BODY, b"'"))],
)
def test_an_interruption_leaves_whole_lines(
    impl: Implementation, monkeypatch: pytest.MonkeyPatch, interrupted: str, item: Any
) -> None:
    form = TextLines(False, 64, False)

    def interrupt(*arguments: Any) -> str:
        raise KeyboardInterrupt

    lines = impl.cli("lines").Lines(form)
    lines.add(COMMON[0])
    monkeypatch.setattr(form, interrupted, interrupt)
    with pytest.raises(KeyboardInterrupt):
        lines.add(item)
    monkeypatch.undo()
    assert lines.take() == form.line(COMMON[0])
