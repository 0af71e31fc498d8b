"""Threads: one decoder refuses to be used twice at once; what is meant to be shared can be."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation
from support.outcomes import describe

from amqpcodec import DecodeError, DecoderInUseError
from amqpcodec._kernel.memo import MEMO
from amqpcodec.spec import Assert

THREADS = 8


@pytest.fixture(autouse=True)
def _frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """The results of some work in several threads that began together; raises what one of them raised."""
    start = threading.Barrier(THREADS)
    outcomes: list[Any] = [None] * THREADS

    def run(number: int) -> None:
        start.wait()
        try:
            outcomes[number] = work(number)
        except BaseException as error:
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes


@pytest.mark.parametrize("strict", [False, True], ids=["lenient", "strict"])
def test_one_decoder_in_many_threads_gives_each_frame_once(amqp: ModuleType, strict: bool) -> None:
    # Strict mode runs Python code in the middle of a frame, where other threads get their turn.
    total = 500
    octets = b"".join(amqp.encode_method(1, amqp.Exchange.Delete(f"name-{n}")) for n in range(total))
    decoder = amqp.FrameDecoder(strict=strict).feed(octets)

    def take(number: int) -> list[str]:
        found = []
        while True:
            try:
                found.append(next(decoder).payload.exchange)
            except StopIteration:
                return found
            except DecoderInUseError:
                time.sleep(0)

    names = Counter(name for found in at_once(take) for name in found)
    assert names == Counter(f"name-{number}" for number in range(total))


def test_a_second_thread_is_refused_while_the_first_decodes(
    amqp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, leave = threading.Event(), threading.Event()

    def holds(check: Assert, value: Any) -> bool:
        inside.set()
        return leave.wait(10)

    monkeypatch.setattr(Assert, "holds", holds)
    decoder = amqp.FrameDecoder(strict=True)
    decoder.feed(amqp.encode_method(1, amqp.Exchange.Delete("name")))
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(decoder))
    thread.start()
    try:
        assert inside.wait(10)
        for entry in (
            lambda: decoder.feed(b""),
            lambda: next(decoder),
            decoder.reset,
            decoder.skip_frame,
            lambda: decoder.get_buffer(-1),
            lambda: decoder.buffer_updated(0),
            lambda: decoder.pending,
        ):
            with pytest.raises(DecoderInUseError, match="decoding"):
                entry()
    finally:
        leave.set()
        thread.join()
    assert [frame.payload.exchange for frame in found] == ["name"]
    assert decoder.pending == 0


def test_octets_fed_by_many_threads_are_all_taken_or_refused(amqp: ModuleType) -> None:
    decoder = amqp.FrameDecoder()
    heartbeat = amqp.encode_heartbeat()

    def feed(number: int) -> int:
        taken = 0
        for _ in range(500):
            try:
                decoder.feed(heartbeat)
                taken += 1
            except DecoderInUseError:
                continue
        return taken

    taken = sum(at_once(feed))
    assert decoder.pending == 8 * taken
    assert len(list(decoder)) == taken


def test_every_entry_from_every_thread_does_no_harm(amqp: ModuleType) -> None:
    decoder = amqp.MessageDecoder()
    octets = amqp.encode_message(1, amqp.Basic.Publish("e", "k"), None, b"x" * 50, frame_max=24)

    def use(number: int) -> None:
        for turn in range(400):
            try:
                match (number + turn) % 7:
                    case 0 | 1:
                        decoder.feed(octets[turn % 30 :])
                    case 2:
                        decoder.reset()
                    case 3:
                        assert decoder.pending >= 0
                        assert decoder.offset >= 0
                    case 4:
                        decoder.skip_frame()
                    case 5:
                        decoder.get_buffer(1)[: len(octets)] = octets
                        decoder.buffer_updated(len(octets))
                    case _:
                        for _ in range(20):
                            next(decoder)
            except (DecoderInUseError, DecodeError, StopIteration):
                continue

    at_once(use)
    decoder.reset()
    [message] = decoder.feed(octets)
    assert message.body == b"x" * 50


def test_decoders_of_their_own_do_not_disturb_each_other(amqp: ModuleType) -> None:
    def work(number: int) -> bool:
        decoder = amqp.MessageDecoder()
        for turn in range(100):
            key, body = f"{number}-{turn}", bytes([number]) * turn
            octets = amqp.encode_message(1 + number, amqp.Basic.Publish(key), None, body, frame_max=64)
            [message] = decoder.feed(octets)
            assert (message.channel, message.method.exchange, message.body) == (1 + number, key, body)
        return True

    assert all(at_once(work))


def test_one_encoder_serves_many_threads(amqp: ModuleType) -> None:
    encoder = amqp.Encoder()
    properties = amqp.BasicProperties(headers={"list": [1, "two", {"three": 3.0}]}, message_id="id")
    publish = amqp.Basic.Publish("exchange", "key")
    expected = encoder.encode_message(1, publish, properties, b"body")
    encoded = at_once(
        lambda number: {encoder.encode_message(1, publish, properties, b"body") for _ in range(200)}
    )
    assert encoded == [{expected}] * THREADS


@pytest.mark.skipif(
    getattr(sys, "_is_gil_enabled", lambda: True)(), reason="counting is cheap where there is a global lock"
)
def test_references_to_what_all_threads_use_are_not_counted() -> None:
    compiled = Implementation("c")
    amqp, frame = compiled.dialect("rabbitmq-0-9-1"), compiled.records.Frame
    publish = amqp.Basic.Publish
    functions = [amqp.encode_method, amqp.encode_message, amqp.encode_table, amqp.decode_table]
    for thing in (*functions, amqp.DIALECT, publish, vars(publish)["exchange"], vars(frame)["payload"]):
        before = sys.getrefcount(thing)
        kept = [thing] * 100
        assert sys.getrefcount(kept[0]) == before, thing


def test_a_raw_table_is_read_by_many_threads(impl: Implementation) -> None:
    octets = impl.tables.encode_table({f"key{number}": [number] for number in range(50)})[4:]
    for _ in range(20):
        table = impl.raw_table(octets)
        seen = at_once(lambda number, table=table: [table, dict(table), list(table.values())[number]])
        assert len({id(found[2]) for found in seen}) == THREADS
        assert all(describe(found[1]) == describe(seen[0][1]) for found in seen)
        assert [found[2] for found in seen] == [[number] for number in range(THREADS)]
        assert table["key3"] is seen[3][2]  # all were given the one reading of it


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_reads_raw_tables_that_a_thread_of_its_parent_was_reading(impl: Implementation) -> None:
    table = impl.raw_table(impl.tables.encode_table({"key": 1})[4:])
    reading, done = threading.Event(), threading.Event()

    def read() -> None:
        with MEMO:
            reading.set()
            done.wait()

    thread = threading.Thread(target=read)
    thread.start()
    reading.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # in place of waiting for good
        os._exit(0 if table["key"] == 1 else 1)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_tables_on_their_own_in_many_threads(impl: Implementation) -> None:
    def work(number: int) -> Any:
        table = {f"key{number}": list(range(number))}
        return [impl.tables.decode_table(impl.tables.encode_table(table)) == table for _ in range(100)]

    assert all(map(all, at_once(work)))


@pytest.mark.skipif(not hasattr(gc, "freeze"), reason="tests cannot control when this interpreter collects")
def test_a_finaliser_that_iterates_while_a_frame_is_decoded_is_refused(amqp: ModuleType) -> None:
    # The collector runs when much was made, since 3.12 where Python code begins, which strict mode does when
    # a method was read; without the global lock it is informed of some hundred objects at a time.
    decoder = amqp.FrameDecoder(strict=True)
    table = {f"key{number}": {"b": [1, {}]} for number in range(400)}
    octets = amqp.encode_method(1, amqp.Queue.Declare(arguments=table))
    seen: list[str] = []
    decoding = False

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            if not decoding:
                return
            for entry in (lambda: next(decoder), lambda: decoder.feed(b""), lambda: decoder.pending):
                try:
                    entry()
                except BaseException as error:
                    seen.append(type(error).__name__)
                else:
                    seen.append("let in")

    rounds: list[list[str]] = []
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()  # what other tests have made would take each collection long
    try:
        for allocations in (*range(2, 40), *range(100, 1200, 100)):  # of which some run it meanwhile
            decoder.reset()
            seen = []
            gc.collect()
            gc.disable()
            Garbage()
            iterator = decoder.feed(octets)
            gc.set_threshold(gc.get_count()[0] + allocations, 0, 1000)  # 0: whatever else there is
            decoding = True
            gc.enable()
            frame = next(iterator, None)
            gc.disable()
            decoding = False
            if frame is None:
                assert seen == ["let in"] * 3  # before decoding began, and so was given the frame
            else:
                assert frame.payload.arguments == table
                rounds.append(seen)
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
        gc.enable()
    assert ["DecoderInUseError"] * 3 in rounds
    # All the others were not called, or once decoding was over.
    assert all(
        seen in ([], ["DecoderInUseError"] * 3, ["StopIteration", "let in", "let in"]) for seen in rounds
    )
