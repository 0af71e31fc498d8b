"""Random tables, sound and damaged: a tolerant decoder takes all of them, and they go out as they came.

The default run is small and always the same; ``AMQPCODEC_FUZZ_EXAMPLES`` asks for more.
"""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.campaign import ASKED, share
from support.implementation import Implementation
from support.memory import traced
from support.outcomes import describe
from support.poison import entry, header, sized

from amqpcodec import EncodeError, Limits, UnreadableTable

_TAGS = [bytes([tag]) for tag in b"tbBsUuIilLfdDSAFTVxZ\0"]
_LIMITS = Limits(table_depth=4, table_entries=12, array_items=5)
_SIZES = st.sampled_from([0, 0, 0, 0, 1, 5, 2**31])


@st.composite
def _sized(draw: st.DrawFn, inner: st.SearchStrategy[bytes]) -> bytes:
    """Octets with a length before them, which may be wrong."""
    octets = draw(inner)
    return struct.pack(">I", len(octets) + draw(_SIZES)) + octets


def _entries(inside: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    keys = st.binary(max_size=3).map(lambda key: bytes([len(key)]) + key)
    return st.lists(st.builds(bytes.__add__, keys, inside), max_size=4).map(b"".join)


def _around(inside: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    tables = _sized(_entries(inside)).map(lambda octets: b"F" + octets)
    arrays = _sized(st.lists(inside, max_size=4).map(b"".join)).map(lambda octets: b"A" + octets)
    return tables | arrays


_FIXED = st.builds(
    bytes.__add__, st.sampled_from(_TAGS), st.sampled_from([1, 1, 2, 4, 4, 8, 8, 5, 0]).map(bytes)
)
_TEXTS = _sized(st.binary(max_size=6)).map(lambda octets: b"S" + octets)
ENTRIES = _entries(st.recursive(_FIXED | _TEXTS, _around, max_leaves=12)) | st.binary(max_size=12)

OPTIONS = st.fixed_dictionaries(
    {
        "strict": st.booleans(),
        "tables": st.sampled_from(["dict", "raw"]),
        "properties": st.sampled_from(["decoded", "raw"]),
        "limits": st.sampled_from([Limits(), _LIMITS]),
    }
)


def _unreadable(value: Any) -> list[UnreadableTable]:
    """All unreadable tables in a value."""
    if isinstance(value, UnreadableTable):
        return [value]
    inside = value.values() if hasattr(value, "values") else value if isinstance(value, list) else ()
    return [found for each in inside for found in _unreadable(each)]


@settings(
    max_examples=share(150), derandomize=not ASKED, deadline=None, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(ENTRIES, OPTIONS)
def test_a_tolerant_decoder_takes_any_table_and_gives_back_its_octets(
    both: tuple[Implementation, Implementation], entries: bytes, options: dict[str, Any]
) -> None:
    octets = header(sized(entries))
    seen = []
    for impl in both:
        amqp = impl.dialect("rabbitmq-0-9-1")
        [frame] = amqp.FrameDecoder(tolerant=True, **options).feed(octets)
        headers = frame.payload.properties.headers
        tables = _unreadable(headers)
        assert all(table.octets in entries and table.error.message for table in tables)
        seen.append((describe(headers), describe(dict(headers)), describe(tables)))
        written = _written(amqp, frame)
        if "raw" in (options["tables"], options["properties"]) or isinstance(headers, UnreadableTable):
            assert written == octets
        elif written is not None:
            [again] = amqp.FrameDecoder(tolerant=True).feed(written)
            assert (
                [each.octets for each in tables]
                == [each.octets for each in _unreadable(again.payload.properties.headers)]
                or options["limits"] is _LIMITS
                or options["strict"]
            )
            assert _written(amqp, again) == written
    assert seen[0] == seen[1]


def _written(amqp: Any, frame: Any) -> bytes | None:
    """The octets of a frame; None where a value is one that no tag of the profile carries."""
    try:
        octets: bytes = amqp.encode_frame(frame, frame_max=0)
    except EncodeError:
        return None
    return octets


@pytest.mark.parametrize("count", [1, 3000])
def test_many_tables_that_cannot_be_read_take_no_more_memory_than_is_said(
    amqp: ModuleType, count: int
) -> None:
    octets = header(sized(entry(b"all", b"A" + sized((b"F" + sized(entry(b"k", b"Z"))) * count))))
    decoder = amqp.FrameDecoder(tolerant=True)
    with traced() as memory:
        [frame] = decoder.feed(octets)
        used = memory()[1]
    assert len(frame.payload.properties.headers["all"]) == count
    assert used < 120 * len(octets) + 65536
