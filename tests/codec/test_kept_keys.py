"""Field tables on their own, of which the compiled build keeps keys from call to call."""

from __future__ import annotations

import gc
import random
import sys
import threading
from typing import Any

import pytest
from support.implementation import Implementation
from support.interpreter import collects_when_told, counts_references

from amqpcodec import DecodeError

SEED = 1789


def test_tables_of_many_keys_come_out_right(impl: Implementation) -> None:
    numbers = random.Random(SEED)
    keys = ["x" * size for size in (0, 1, 7, 8, 9, 15, 16, 17, 47, 48, 49, 255)]
    sizes = (1, 2, 3, 8, 12, 30, 48)
    keys += [f"{numbers.getrandbits(4 * size):0{size}x}" for size in sizes for _ in range(200)]
    keys += [key + "é" for key in keys if len(key) < 200]
    for _ in range(400):
        table = {key: number for number, key in enumerate(numbers.choices(keys, k=numbers.randrange(12)))}
        octets = impl.tables.encode_table(table)
        for _ in range(3):
            found = impl.tables.decode_table(octets)
            assert list(found.items()) == list(table.items())
            assert list(impl.tables.decode_pairs(octets[4:]).items()) == list(table.items())


def test_keys_that_differ_in_one_octet_are_distinguished(impl: Implementation) -> None:
    for size in (1, 2, 3, 7, 8, 9, 16, 17, 33, 48):
        keys = ["a" * at + "b" + "a" * (size - at - 1) for at in range(size)] + ["a" * size]
        for _ in range(3):
            for key in keys:
                assert impl.tables.decode_table(impl.tables.encode_table({key: 1})) == {key: 1}


def test_whoever_changes_a_table_changes_no_other(impl: Implementation) -> None:
    octets = impl.tables.encode_table({"inner": {"items": [1]}, "key": 1})
    for _ in range(4):
        table = impl.tables.decode_table(octets)
        assert table == {"inner": {"items": [1]}, "key": 1}
        table["inner"]["items"].append(2)
        table["inner"]["more"] = 1
        table["key"] = 2


def test_a_later_value_of_a_key_wins_every_time(impl: Implementation) -> None:
    octets = b"\0\0\0\x08" + b"\1at\1" + b"\1at\0"
    for _ in range(4):
        assert impl.tables.decode_table(octets) == {"a": False}
        with pytest.raises(DecodeError, match="table key 'a' twice") as caught:
            impl.tables.decode_table(octets, strict=True)
        assert caught.value.offset == 8


def test_a_key_that_strict_mode_refuses_is_refused_every_time(impl: Implementation) -> None:
    octets = impl.tables.encode_table({"a\0b": 1})
    for _ in range(4):
        assert impl.tables.decode_table(octets) == {"a\0b": 1}
        with pytest.raises(DecodeError, match="zero octet"):
            impl.tables.decode_table(octets, strict=True)


def test_values_of_pairs_are_not_kept(impl: Implementation) -> None:
    """A password of the mechanism AMQPLAIN comes in pairs."""
    octets = b"\5LOGIN" + b"s\5guest" + b"\x08PASSWORD" + b"s\x15secret of some length"
    seen = [impl.tables.decode_pairs(octets, profile="wg-0-9-1")["PASSWORD"] for _ in range(4)]
    assert set(seen) == {"secret of some length"}
    assert len({id(each) for each in seen}) == 4


@counts_references
def test_octets_are_not_held(impl: Implementation) -> None:
    octets = impl.tables.encode_table({"key": 1})
    more = octets + b"x"
    before = sys.getrefcount(octets), sys.getrefcount(more)
    assert impl.tables.decode_table(octets) == {"key": 1}
    with pytest.raises(DecodeError):
        impl.tables.decode_table(more)
    assert (sys.getrefcount(octets), sys.getrefcount(more)) == before


@collects_when_told
def test_a_table_may_be_read_while_another_is(impl: Implementation) -> None:
    inner = impl.tables.encode_table({"inner": [1, {"key": "value"}]})
    outer = impl.tables.encode_table({f"key-{number}": {"n": number} for number in range(50)})
    found: list[Any] = []

    def collect(phase: str, info: dict[str, int]) -> None:
        found.append(impl.tables.decode_table(inner))

    threshold = gc.get_threshold()
    gc.callbacks.append(collect)
    gc.set_threshold(1)
    try:
        tables = [impl.tables.decode_table(outer) for _ in range(20)]
    finally:
        gc.callbacks.remove(collect)
        gc.set_threshold(*threshold)
    # Since CPython 3.12 the collector runs between calls of C functions, or not at all.
    assert found or sys.version_info >= (3, 12)
    assert all(each == {"inner": [1, {"key": "value"}]} for each in found)
    assert all(each == {f"key-{number}": {"n": number} for number in range(50)} for each in tables)


def test_threads_share_a_codec(impl: Implementation) -> None:
    wrong: list[Any] = []

    def work(mark: int) -> None:
        table = {f"key-{number}": mark for number in range(20)} | {f"own-{mark}": True}
        octets = impl.tables.encode_table(table)
        for _ in range(500):
            if impl.tables.decode_table(octets) != table:
                wrong.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_after_an_error_the_next_table_is_read(impl: Implementation) -> None:
    octets = impl.tables.encode_table({"key": 1, "other": 2})
    for _ in range(4):
        with pytest.raises(DecodeError) as caught:
            impl.tables.decode_table(octets + b"x")
        assert caught.value.offset == len(octets)
        assert impl.tables.decode_table(octets) == {"key": 1, "other": 2}
