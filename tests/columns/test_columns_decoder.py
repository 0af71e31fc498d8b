"""`BatchDecoder` itself: entered by one caller at a time, ended by an error, not to be copied."""

from __future__ import annotations

import copy
import pickle
import random
import threading
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.columns import BUILDS
from support.peers import Peer, damaged
from support.tiers import few

from amqpcodec import DecodeError, DecoderInUseError, _backend, arrow, rabbitmq
from amqpcodec._columns import build as columns_build

GOOD = rabbitmq.encode_method(1, rabbitmq.Basic.Ack(7))
BAD = b"\x01\0\1\0\0\0\4\0\x3c\0\x50\xce"  # basic.ack without its arguments


@pytest.fixture(params=BUILDS, autouse=True)
def _each_build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """`BatchDecoder` takes the build in use; here, each in turn."""

    def load(name: str, impl: str = "") -> Any:
        return _backend.load(name, request.param)

    class Backend:
        IMPL = request.param

    Backend.load = staticmethod(load)  # type: ignore[attr-defined]
    monkeypatch.setattr(columns_build, "_backend", Backend)


def offsets(batches: list[pa.RecordBatch]) -> list[int]:
    return [row["offset"] for batch in batches for row in batch.to_pylist()]


def rows_of(chunks: list[bytes], table: str, **options: Any) -> list[dict[str, Any]]:
    """All rows of a stream that comes in these chunks."""
    decoder = arrow.BatchDecoder(table, **options)
    batches = [batch for chunk in chunks for batch in decoder.feed(chunk)]
    return [row for batch in [*batches, *decoder.finish()] for row in batch.to_pylist()]


def test_a_second_thread_is_refused() -> None:
    decoder = arrow.BatchDecoder("methods", batch_rows=100)
    octets, start, refused = GOOD * 5_000, threading.Barrier(3), []
    rows = [0] * 3

    def work(number: int) -> None:
        start.wait()
        for _ in range(3):
            try:
                rows[number] += sum(batch.num_rows for batch in decoder.feed(octets))
            except DecoderInUseError:
                refused.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    given = sum(rows) + sum(batch.num_rows for batch in decoder.finish())
    assert given == 5_000 * (9 - len(refused))


def test_an_error_ends_the_stream_and_finish_gives_the_rows_before_it() -> None:
    decoder = arrow.BatchDecoder("methods", mode="fail")
    assert decoder.feed(GOOD) == []
    with pytest.raises(DecodeError):
        decoder.feed(GOOD + BAD + GOOD)
    with pytest.raises(ValueError, match="an error ended the stream: longlong"):
        decoder.feed(GOOD)
    assert offsets(decoder.finish()) == [0, len(GOOD)]
    with pytest.raises(ValueError, match="an error ended the stream"):
        decoder.finish()


def test_an_error_at_the_end_leaves_the_rows_before_it() -> None:
    decoder = arrow.BatchDecoder("messages", mode="fail")
    message = rabbitmq.encode_message(1, rabbitmq.Basic.Publish(), None, b"")
    method = rabbitmq.encode_method(1, rabbitmq.Basic.Publish())
    header = b"\2\0\1\0\0\0\x0f\0\x3c\0\0\0\0\0\0\0\0\0\5\x80\0\xff\xce"  # its text is not all there
    decoder.feed(message + method + header)
    with pytest.raises(DecodeError):
        decoder.finish()
    assert offsets(decoder.finish()) == [0]


class TestNoOctetIsLostWithoutAWord:
    """Whatever octets come, each is in a frame with a row, or a row or failure reports it."""

    LARGE = rabbitmq.encode_method(0, rabbitmq.Connection.Secure(b"x" * 200_000))
    HUGE = rabbitmq.encode_body(1, bytes((16 << 20) - 8))

    @pytest.mark.parametrize("before", [b"", GOOD, rabbitmq.DIALECT.protocol_header])
    @pytest.mark.parametrize("large", [LARGE, HUGE], ids=["large", "as large as may be"])
    def test_a_large_first_frame_is_a_frame(self, before: bytes, large: bytes) -> None:
        rows = arrow.decode_frames(before + large + GOOD, mode="fail", columns=["offset", "size"]).to_pylist()
        assert rows[-2:] == [
            {"offset": len(before), "size": len(large) - 8},
            {"offset": len(before + large), "size": len(GOOD) - 8},
        ]

    def test_a_large_content_is_a_message(self) -> None:
        octets = rabbitmq.encode_message(1, rabbitmq.Basic.Publish(), None, bytes(300_000), frame_max=0)
        rows = arrow.decode_messages(octets * 2, mode="fail", columns=["body_size", "complete"])
        assert rows.to_pylist() == [{"body_size": 300_000, "complete": True}] * 2

    @pytest.mark.parametrize("table", ["frames", "methods", "messages"])
    @pytest.mark.parametrize(
        ("octets", "error"),
        [
            (b"no frame at all", "FRAME_ERROR at 0"),
            (b"odd" + GOOD * 3, "FRAME_ERROR at 0"),
            (LARGE[:-1], "LOST at 0"),
            (GOOD[:-1], "LOST at 0"),
            (b"\1", "LOST at 0"),
            (b"AMQ", "LOST at 0"),
            (b"AMQP\0\0\t", "LOST at 0"),
            (b"AMQP\3\1\0\0" + b"no frame at all", "LOST at 8"),
            (GOOD + GOOD[:-1], f"LOST at {len(GOOD)}"),
            (GOOD + LARGE[:-1], f"LOST at {len(GOOD)}"),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("dialect", ["rabbitmq-0-9-1", "auto"])
    @pytest.mark.parametrize("size", few([1 << 20, 5], 1, "the same in small chunks"))
    def test_octets_in_no_frame_are_an_error(
        self, table: str, octets: bytes, error: str, dialect: str, size: int
    ) -> None:
        size = max(size, len(octets) // 1000)
        chunks = [octets[at : at + size] for at in range(0, len(octets), size)]
        found = rows_of(chunks, table, dialect=dialect, columns=["_error"])
        assert [row["_error"] for row in found if row["_error"]] == [error]
        assert not [row for row in rows_of(chunks, table, dialect=dialect, mode="drop") if row["_error"]]
        with pytest.raises(DecodeError) as caught:
            rows_of(chunks, table, dialect=dialect, mode="fail")
        assert f"at {caught.value.offset}" in error
        (first, *_) = rows_of(chunks, "errors", dialect=dialect)
        assert f"{first['code']} at {first['offset']}" == error

    def test_octets_lost_behind_an_error_need_no_row_of_their_own(self) -> None:
        found = rows_of([GOOD + b"odd octets" + GOOD * 2 + GOOD[:3]], "methods", columns=["_error"])
        assert [row["_error"] for row in found] == [
            None, f"FRAME_ERROR at {len(GOOD)}", None, None, f"LOST at {3 * len(GOOD) + 10}",
        ]  # fmt: skip

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(seed=st.integers(0, 2**32))
    def test_of_damaged_streams_all_octets_are_reported(self, seed: int) -> None:
        source = random.Random(seed)
        octets = damaged(source, b"".join(Peer(source, "rabbitmq-0-9-1").frames(source.choice((1, 3)))))
        octets = octets[source.choice((0, 0, 1, 9)) :]
        frames = rows_of([octets], "frames", columns=["offset", "size", "_error"])
        whole = sum(row["size"] + 8 for row in frames if row["size"] is not None)
        errors = rows_of([octets], "errors")
        lost = sum(row["length"] for row in errors if row["kind"] == "lost")
        assert whole + lost == len(octets)
        reported = [row["_error"] for row in frames if row["_error"]]
        assert len(reported) == len({row["offset"] for row in errors if row["octets"] is None})


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_decoder_is_not_copied(take: Any) -> None:
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        take(arrow.BatchDecoder("methods"))


def test_a_large_frame_that_the_stream_cuts_is_one_lost_stretch_whatever_it_holds() -> None:
    inside = rabbitmq.encode_method(1, rabbitmq.Basic.Publish(routing_key="inside")) * 9600
    head = b"\3\0\1" + len(inside).to_bytes(4, "big")
    lead = rabbitmq.encode_method(1, rabbitmq.Basic.Publish(routing_key="k"))
    lead += rabbitmq.encode_header(1, rabbitmq.BasicProperties(), len(inside))
    rows = rows_of([lead + head + inside], "methods")
    assert [(row["name"], row["offset"]) for row in rows] == [("basic.publish", 0), (None, len(lead))]
    assert rows[1]["_error"] == f"LOST at {len(lead)}"
