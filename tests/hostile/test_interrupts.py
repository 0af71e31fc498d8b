"""An interrupt at any moment of a call: the decoder is of use after `reset`, and never locked for good.

What raises comes before every single step of the pure build, at more places than signals do. The compiled
build is not interrupted between its steps.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
from support.campaign import stride
from support.interpreter import PYPY
from support.outcomes import describe
from support.stepping import step_by_step, stop_stepping
from support.tiers import few

from amqpcodec import DecodeError, DecoderInUseError
from amqpcodec._kernel import lock_py

# One step of three is interrupted, for the time it takes: of each kind of decoder and lock another one, since
# most of their steps are the same. PyPy compiles nothing that is traced: there, it is one of eleven. Of the
# first steps each is, since a long stride may pass over the few that leave a decoder locked.
STRIDE = 11 if PYPY else stride(5)
EACH = 40

EMPTY_METHOD = b"\x01\0\x01\0\0\0\0\xce"
# Where a decoder's state is kept; what only reads values comes back to these, whatever ends it.
KERNEL = tuple(f"amqpcodec._kernel.{name}_py" for name in ("stream", "frames", "messages", "lock"))
ARROW = ("amqpcodec.arrow.",)


@pytest.fixture(scope="module", autouse=True)
def before() -> type[BaseException] | None:
    """The exception that tests of other files have left; PyPy keeps one after the stack was full."""
    return sys.exc_info()[0]


def interrupted(work: Callable[[], Any], step: int, modules: tuple[str, ...]) -> bool:
    """Whether work was interrupted, at this step of all that functions of some modules do in it."""
    # An interpreter interrupted as it leaves an `except` still "handles" that exception afterwards, and every
    # later one would get it as its context. A generator takes this state along when it ends.
    return next(_interruptions(work, step, modules))


def _interruptions(work: Callable[[], Any], step: int, modules: tuple[str, ...]) -> Iterator[bool]:
    left = step

    def before_step() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt

    found = False
    try:
        step_by_step(modules, before_step)
        work()
    except KeyboardInterrupt:
        found = True
    finally:
        stop_stepping()
    yield found


@pytest.fixture
def arrow() -> ModuleType:
    pytest.importorskip("pyarrow")
    return importlib.import_module("amqpcodec.arrow")


def stream(amqp: ModuleType) -> bytes:
    ack = amqp.encode_method(1, amqp.Basic.Ack(7))
    return bytes(ack + amqp.encode_message(1, amqp.Basic.Publish("e", "k"), None, b"body"))


def receive(decoder: Any, octets: bytes) -> None:
    decoder.get_buffer(1)[: len(octets)] = octets
    list(decoder.buffer_updated(len(octets)))


def in_chunks(decoder: Any, octets: bytes) -> None:
    for chunk in (octets[:5], octets[5:30], octets[30:]):
        list(decoder.feed(chunk))


def skip(decoder: Any, octets: bytes) -> None:
    with suppress(DecodeError):
        list(decoder.feed(EMPTY_METHOD + octets))
    decoder.skip_frame()
    next(decoder)


CALLS: dict[str, Callable[[Any, bytes], Any]] = {
    "feed": lambda decoder, octets: decoder.feed(octets),
    "iteration": lambda decoder, octets: list(decoder.feed(octets)),
    "chunks": in_chunks,
    "get_buffer and buffer_updated": receive,
    "skip_frame": skip,
    "reset": lambda decoder, octets: (decoder.feed(octets[:9]), decoder.reset()),
    "pending": lambda decoder, octets: (decoder.feed(octets), decoder.pending),
}


@pytest.mark.parametrize("call", few(CALLS, 4, "further calls"))
@pytest.mark.parametrize(
    ("kind", "lock", "first"),
    [("FrameDecoder", "_GilLock", 0), ("MessageDecoder", "_GilLock", 1), ("FrameDecoder", "_ThreadLock", 2)],
)
def test_an_interrupt_at_any_step_leaves_a_decoder_that_can_be_reset(
    amqp: ModuleType, monkeypatch: pytest.MonkeyPatch, kind: str, call: str, lock: str, first: int
) -> None:
    monkeypatch.setattr("amqpcodec._kernel.stream_py.Lock", getattr(lock_py, lock))
    octets = stream(amqp)
    expected = describe(list(getattr(amqp, kind)().feed(octets)))
    decoder, step, locked = getattr(amqp, kind)(), first, 0
    while interrupted(lambda: CALLS[call](decoder, octets), step, KERNEL):
        try:
            decoder.get_buffer(1)
        except DecoderInUseError:
            locked += 1
        # So may be what heals it.
        interrupted(decoder.reset, 3 * step % 101, KERNEL)
        decoder.reset()
        assert describe(list(decoder.feed(octets))) == expected
        assert (decoder.pending, decoder.offset) == (0, len(octets))
        decoder.reset()
        step += STRIDE if step >= EACH + first else 1
    if amqp.__name__.endswith("_py"):
        assert step > 20
        assert locked > 0  # or there would be nothing to heal


@pytest.mark.parametrize("lock", ["_GilLock", "_ThreadLock"])
def test_a_reset_while_the_interrupt_is_handled_is_enough(
    amqp: ModuleType, monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    monkeypatch.setattr("amqpcodec._kernel.stream_py.Lock", getattr(lock_py, lock))
    decoder = amqp.FrameDecoder()
    octets = stream(amqp)

    def work() -> None:
        try:
            list(decoder.feed(octets))
        except KeyboardInterrupt:  # with the traceback, whose frames are kept
            decoder.reset()
            raise

    step = 0
    while interrupted(work, step, KERNEL):
        assert len(list(decoder.feed(octets))) == 4
        step += STRIDE


@pytest.mark.parametrize("lock", ["_GilLock", "_ThreadLock"])
def test_a_call_that_is_under_way_is_not_taken_over(
    amqp: ModuleType, monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    monkeypatch.setattr("amqpcodec._kernel.stream_py.Lock", getattr(lock_py, lock))
    decoder = amqp.FrameDecoder(strict=True)
    entered, checked = threading.Event(), threading.Event()

    def holds(check: Any, value: Any) -> bool:
        with pytest.raises(DecoderInUseError):
            decoder.reset()
        entered.set()
        return checked.wait(10)

    monkeypatch.setattr("amqpcodec.spec.Assert.holds", holds)
    decoder.feed(amqp.encode_method(1, amqp.Exchange.Delete("name")))
    worker = threading.Thread(target=lambda: next(decoder))
    worker.start()
    assert entered.wait(10)
    for _ in range(3):
        with pytest.raises(DecoderInUseError):
            decoder.reset()
    checked.set()
    worker.join()
    assert decoder.offset > 0
    decoder.reset()


def test_resets_in_many_threads_heal_a_decoder_once(amqp: ModuleType) -> None:
    if not amqp.__name__.endswith("_py"):
        pytest.skip("the compiled build has nothing to heal")
    decoder, octets = amqp.FrameDecoder(), stream(amqp)
    if not isinstance(decoder._lock, lock_py._GilLock):
        pytest.skip("without a global lock, only the thread that was interrupted heals a decoder")
    for _ in range(50):
        decoder._lock.locked = True  # as an interrupt leaves it
        inside, most, healed = 0, 0, 0

        def forget(original: Callable[[], None] = decoder._forget) -> None:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            original()
            inside -= 1

        def work() -> None:
            nonlocal healed
            lock = decoder._lock
            if lock.acquire() or lock.reclaim():
                forget()
                healed += 1
                lock.release()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most <= 1
        decoder.reset()
        assert len(list(decoder.feed(octets))) == 4


def test_an_interrupted_decoder_of_columns_gives_what_it_has(amqp: ModuleType, arrow: ModuleType) -> None:
    octets = stream(amqp)
    step = 0
    while True:
        decoder = arrow.BatchDecoder("frames")
        decoder.feed(octets)
        if not interrupted(lambda at=decoder: at.feed(octets), step, ARROW):  # type: ignore[misc]
            break
        with suppress(ValueError):
            decoder.feed(b"")
        assert sum(batch.num_rows for batch in decoder.finish()) >= 4
        step += STRIDE
    assert step > 20


def test_an_interrupted_decoder_of_values_decodes_the_next(amqp: ModuleType, arrow: ModuleType) -> None:
    decoder, step = arrow.ValueDecoder(explode=True), 0
    values = pytest.importorskip("pyarrow").array([stream(amqp)])
    while interrupted(lambda: decoder.decode(values), step, ARROW):
        assert decoder.decode(values).num_rows == 4
        step += STRIDE
    assert step > 20


def test_an_interrupt_leaves_no_exception_to_those_behind_it(before: type[BaseException] | None) -> None:
    assert sys.exc_info()[0] is before
