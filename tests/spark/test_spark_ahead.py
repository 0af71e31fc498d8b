"""Files of a store are read by few requests, ahead of need, in bounded memory, as they are."""

from __future__ import annotations

import io
import random
import threading
from contextlib import closing

import pytest

pytest.importorskip("pyspark")

from amqpcodec.spark.ahead import ReadAhead

KIB, MIB = 1 << 10, 1 << 20
OCTETS = random.Random(7).randbytes(61 * MIB + 12_345)


class Stored:
    """A file as pyarrow opens it; `asked` has each range that was requested."""

    def __init__(self, octets: bytes = OCTETS, *, there: int | None = None) -> None:
        self._octets = octets[:there]
        self._size = len(octets)
        self._lock = threading.Lock()
        self.asked: list[tuple[int, int]] = []
        self.fails_from = self._size
        self.closed = False

    def size(self) -> int:
        return self._size

    def read_at(self, size: int, offset: int) -> bytes:
        assert not self.closed
        with self._lock:
            self.asked.append((offset, min(offset + size, self._size)))
        if offset + size > self.fails_from:
            raise OSError("the store is gone")
        return self._octets[offset : offset + size]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def stored() -> Stored:
    return Stored()


def test_a_file_is_read_whole_by_few_requests_of_which_none_overlaps(stored: Stored) -> None:
    with closing(ReadAhead(stored)) as file:
        assert io.BufferedReader(file, 128 * KIB).read() == OCTETS
    asked = sorted(stored.asked)
    assert [begin for begin, _ in asked] == [0, *(end for _, end in asked[:-1])]
    assert [end - begin for begin, end in asked[:4]] == [128 * KIB, MIB, 8 * MIB, 8 * MIB]
    assert len(asked) == 10
    assert stored.closed


@pytest.mark.parametrize("size", [1, 16, 128 * KIB])
def test_a_look_at_the_start_is_one_small_request(stored: Stored, size: int) -> None:
    with closing(ReadAhead(stored)) as file:
        assert file.read(size) == OCTETS[:size]
        file.seek(24)
        assert file.read(16) == OCTETS[24:40]
    assert stored.asked == [(0, 128 * KIB)]


def test_a_look_at_the_end_is_one_request_as_large_as_what_is_wanted(stored: Stored) -> None:
    with closing(ReadAhead(stored)) as file:
        assert file.seek(-MIB, io.SEEK_END) == len(OCTETS) - MIB
        assert file.read(MIB) == OCTETS[-MIB:]
        assert file.read(1) == b""
    assert stored.asked == [(len(OCTETS) - MIB, len(OCTETS))]


def test_reads_and_seeks_in_any_order_give_the_octets_of_the_file(stored: Stored) -> None:
    choices = random.Random(3)
    with closing(ReadAhead(stored)) as file:
        for _ in range(200):
            if choices.random() < 0.4:
                step = choices.choice([-9 * MIB, -1, 0, 1, 100 * KIB, 7 * MIB, 20 * MIB])
                place = file.seek(max(0, min(file.tell() + step, len(OCTETS))))
                assert file.tell() == place
            begin, size = file.tell(), choices.choice([1, 3, 16 * KIB, 128 * KIB, 3 * MIB])
            assert file.read(size) == OCTETS[begin : begin + size]


def test_no_more_than_three_requests_are_in_memory(stored: Stored) -> None:
    with closing(ReadAhead(stored)) as file:
        for _ in range(61):
            file.read(MIB)
            furthest = max(end for _, end in stored.asked)
            assert furthest - file.tell() <= 24 * MIB


def test_nothing_behind_the_end_of_a_range_is_requested_unless_it_is_needed(stored: Stored) -> None:
    end = 20 * MIB + 5
    with closing(ReadAhead(stored, end)) as file:
        assert file.read(end) == OCTETS[:end]
        assert max(each for _, each in stored.asked) == end
        assert file.read(10) == OCTETS[end : end + 10]
        assert max(each for _, each in stored.asked) == end + 128 * KIB


def test_an_error_of_the_store_is_raised_where_its_octets_are_read(stored: Stored) -> None:
    stored.fails_from = 30 * MIB
    with closing(ReadAhead(stored)) as file:
        assert file.read(17 * MIB) == OCTETS[: 17 * MIB]
        with pytest.raises(OSError, match="the store is gone"):
            file.read(30 * MIB)
    assert stored.closed


@pytest.mark.parametrize("there", [0, 5, 128 * KIB, 3 * MIB + 1])
def test_a_file_that_became_shorter_ends_there(there: int) -> None:
    with closing(ReadAhead(Stored(there=there))) as file:
        assert file.read() == OCTETS[:there]


def test_an_empty_file_is_not_requested() -> None:
    stored = Stored(b"")
    with closing(ReadAhead(stored)) as file:
        assert file.read() == b""
    assert stored.asked == []
