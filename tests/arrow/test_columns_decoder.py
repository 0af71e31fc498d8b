"""`BatchDecoder` itself: entered by one caller at a time, ended by an error, not to be copied."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import pyarrow as pa
import pytest
from support.columns import BUILDS

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


def test_a_second_thread_is_refused() -> None:
    decoder = arrow.BatchDecoder("methods", rows=100)
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


@pytest.mark.parametrize("take", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_decoder_is_not_copied(take: Any) -> None:
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        take(arrow.BatchDecoder("methods"))
