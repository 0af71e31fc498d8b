"""How the values of frames are shown: as text, and as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaign import share
from support.command import BUNNY, TXAMQP, Run

import amqpcodec
from amqpcodec._json import json_value
from amqpcodec.capture import CapturedFrame, read_frames
from amqpcodec.cli.rendering import Stamps, clock, json_text, method_fields, octets, text


@pytest.mark.parametrize(
    ("time_ns", "shown"),
    [
        (0, "00:00:00.000000"), (59_999_999_999, "00:00:59.999999"), (60_000_000_000, "00:01:00.000000"),
        (86_399_000_001_000, "23:59:59.000001"), (86_400_000_000_999, "00:00:00.000000"),
        (-1_000, "23:59:59.999999"), (None, "--:--:--.------"),
    ],
)  # fmt: skip
def test_a_time_of_day_has_hours_minutes_seconds_and_microseconds(time_ns: int | None, shown: str) -> None:
    assert clock(time_ns) == shown


def test_values_as_json_and_as_text() -> None:
    moment = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    values = {
        "a": b"\xff",
        "b": moment,
        "c": Decimal("1.50"),
        "d": float("nan"),
        "e": float("-inf"),
        "f": None,
    }
    assert json_value(values) == {"a": {"hex": "ff"}, "b": "2024-01-02T03:04:05Z", "c": "1.50", "d": "nan",
                                  "e": "-inf", "f": None}  # fmt: skip
    assert text(values) == "{a: 0xff, b: 2024-01-02T03:04:05Z, c: 1.50, d: nan, e: -inf, f: void}"
    assert json_value(amqpcodec.FieldValue("b", 3)) == {"type": "b", "value": 3}
    assert json_value(amqpcodec.InlineContent(b"x")) == {"type": "InlineContent", "value": {"hex": "78"}}
    assert text(amqpcodec.FieldValue("b", 3)) == "b:3"
    assert text([amqpcodec.InlineContent(b"x"), object]) == f"[InlineContent:'x', {object}]"
    assert text([True, 1.5, "it's", "x" * 1000]) == f"[true, 1.5, \"it's\", '{'x' * 240}'...(+760)]"
    assert octets(b"plain") == "'plain'"
    assert octets(b"\0\1") == "0x0001"
    assert octets("ü".encode() * 9, 5) == "'üü'...(+13)"
    assert octets(b"", 5) == "''"
    assert octets(b"abc", 0) == "''...(+3)"
    assert json.loads(json_text({**values, "d": 0.5, "e": [1, None, {"é": "ü\udcff"}]})) == {
        **json_value(values), "d": 0.5, "e": [1, None, {"é": "ü\udcff"}],
    }  # fmt: skip
    stamps = Stamps("T", 9, "Z", none="-")
    assert stamps.text(1) == "1970-01-01T00:00:00.000000001Z"
    assert stamps.text(-1) == "1969-12-31T23:59:59.999999999Z"
    assert stamps.text(None) == stamps.text(2**80) == "-"


@pytest.mark.parametrize("path", [BUNNY, TXAMQP], ids=lambda path: path.stem)
def test_fields_and_properties_are_shown_as_their_values_are(run: Run, path: Path) -> None:
    items = [item for item in read_frames(path) if isinstance(item, CapturedFrame)]
    lines, rows = run(path), run.rows(path)
    for item, line, row in zip(items, lines, rows, strict=True):
        payload = item.frame.payload
        if item.frame.type == 1:
            shown = dict(method_fields(payload, False))
            assert row["fields"] == json.loads(json.dumps({name: json_value(v) for name, v in shown.items()}))
        elif item.frame.type == 2:
            names = [field.attribute for field in payload.properties.spec.fields]
            found = {name: getattr(payload.properties, name) for name in names}
            shown = {name: value for name, value in found.items() if value is not None}
            assert row["properties"] == {name: json_value(value) for name, value in shown.items()}
        else:
            continue
        assert line.endswith("".join(f" {name}={text(value)}" for name, value in shown.items()))


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=300), st.binary(max_size=9),
    st.datetimes(timezones=st.just(UTC)), st.decimals(allow_nan=False),
    st.builds(amqpcodec.FieldValue, st.just("b"), st.integers(-9, 9)),
)  # fmt: skip


@settings(max_examples=share(40))
@given(
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_value_is_the_same_as_json_by_either_way(value: Any) -> None:
    assert json_text(value) == json.dumps(json_value(value), allow_nan=False)
