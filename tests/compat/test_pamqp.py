"""pamqp accelerated: what takes the fast path, what does not, and that patches made later win."""

from __future__ import annotations

import copy
import enum
import gc
import inspect
import pickle
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from support.marks import replaces

from amqpcodec import compat
from amqpcodec._kernel import slots

frame: Any = pytest.importorskip("pamqp.frame")
base: Any = pytest.importorskip("pamqp.base")
body: Any = pytest.importorskip("pamqp.body")
commands: Any = pytest.importorskip("pamqp.commands")
decode: Any = pytest.importorskip("pamqp.decode")
encode: Any = pytest.importorskip("pamqp.encode")
exceptions: Any = pytest.importorskip("pamqp.exceptions")
header: Any = pytest.importorskip("pamqp.header")
heartbeat: Any = pytest.importorskip("pamqp.heartbeat")

HEADERS = {
    "count": 5,
    "name": "x",
    "deep": {"list": [1, True, None, 1.5]},
    "at": datetime(2026, 1, 2, tzinfo=UTC),
}


class Mode(enum.IntEnum):
    PERSISTENT = 2


@pytest.fixture
def status() -> Iterator[Callable[[], compat.Status]]:
    """pamqp accelerated, and how it is getting on."""
    with compat.installed("pamqp"):
        yield lambda: compat.status()["pamqp"]


def traffic() -> list[Any]:
    properties = commands.Basic.Properties(
        content_type="text/plain",
        delivery_mode=Mode.PERSISTENT,
        headers=HEADERS,
        message_id="1",
        timestamp=HEADERS["at"],
    )
    return [
        commands.Basic.Publish(exchange="ex", routing_key="key", mandatory=True),
        commands.Queue.Declare(queue="jobs", durable=True, arguments={"x-max-length": 10}),
        commands.Basic.Deliver("tag", 7, False, "ex", "key"),
        commands.Channel.CloseOk(),
        header.ContentHeader(body_size=4, properties=properties),
        body.ContentBody(b"body"),
        heartbeat.Heartbeat(),
    ]


@replaces
def test_ordinary_traffic_takes_the_fast_path(status: Any) -> None:
    for sent in traffic():
        octets = frame.marshal(sent, 3)
        consumed, channel, read = frame.unmarshal(octets)
        assert (consumed, type(read)) == (len(octets), type(sent))
        assert channel == (0 if isinstance(sent, heartbeat.Heartbeat) else 3)
        assert frame.marshal(read, 3) == octets
    assert status().fallbacks == {}
    assert status().fast >= 21


def test_octets_that_end_within_a_frame_are_no_fall_back(status: Any) -> None:
    octets = frame.marshal(commands.Basic.Ack(7), 1)
    for end in range(len(octets)):
        with pytest.raises(exceptions.UnmarshalingException):
            frame.unmarshal(octets[:end])
    assert status().fallbacks == {}


@replaces
def test_what_is_not_the_common_case_goes_to_pamqp_and_is_counted(status: Any) -> None:
    with pytest.raises(exceptions.UnmarshalingException, match="Last byte error"):
        frame.unmarshal(frame.marshal(commands.Basic.Ack(7), 1)[:-1] + b"\0")
    with pytest.raises(ValueError, match="Invalid value for exchange"):
        commands.Basic.Publish(exchange="no*")
    late = header.ContentHeader(0, 0, commands.Basic.Properties(timestamp=datetime(2300, 1, 1)))
    assert (
        frame.unmarshal(frame.marshal(late, 1))[2].properties.timestamp.year == 1970
    )  # read as milliseconds
    of_calls = {"pamqp.commands.Basic.Publish: arguments"} if slots.ON else set()
    assert set(status().fallbacks) == of_calls | {
        "pamqp.frame.unmarshal: no whole frame",
        "pamqp.frame.unmarshal: values",
    }


@replaces
def test_wrong_calls_get_the_type_errors_of_pamqp(status: Any) -> None:
    for call in (
        frame.unmarshal,
        lambda: frame.marshal(1),
        lambda: frame.unmarshal(b"", 1),
        commands.Basic.Ack,
    ):
        stock = status().originals
        if call is commands.Basic.Ack:
            with pytest.raises(TypeError, match=r"__init__\(\) got an unexpected keyword argument 'nothing'"):
                call(nothing=1)
            continue
        with pytest.raises(TypeError) as refused:
            call()
        assert "unmarshal()" in str(refused.value) or "marshal()" in str(refused.value)
        assert stock["pamqp.frame.unmarshal"].__name__ == "unmarshal"


@replaces
def test_what_stands_in_the_place_of_a_function_looks_like_it(status: Any) -> None:
    stock = status().originals["pamqp.frame.unmarshal"]
    assert frame.unmarshal.__name__ == "unmarshal"
    assert frame.unmarshal.__module__ == "pamqp.frame"
    assert frame.unmarshal.__wrapped__ is stock
    assert inspect.signature(frame.unmarshal) == inspect.signature(stock)
    assert pickle.loads(pickle.dumps(frame.unmarshal)) is frame.unmarshal
    assert frame.unmarshal(data_in=frame.marshal(commands.Basic.Ack(7), 1))[2].delivery_tag == 7


def test_pickles_and_copies_do_not_know_of_it() -> None:
    with compat.installed("pamqp"):
        made = commands.Basic.Deliver("tag", 7, False, "ex", "key")
        octets = pickle.dumps(made)
        assert dict(copy.copy(made)) == dict(made)
    assert dict(pickle.loads(octets)) == dict(made)
    assert octets == pickle.dumps(commands.Basic.Deliver("tag", 7, False, "ex", "key"))


# -- patches made later win


@replaces
@pytest.mark.parametrize("owner", ["Basic.Ack", "Frame"])
@pytest.mark.parametrize("name", ["__init__", "marshal", "validate", "unmarshal"])
def test_a_class_that_is_patched_later_is_left_to_python(
    status: Any, monkeypatch: pytest.MonkeyPatch, owner: str, name: str
) -> None:
    cls = commands.Basic.Ack if owner == "Basic.Ack" else base.Frame
    calls: list[str] = []
    original = getattr(commands.Basic.Ack, name)

    def patched(self: Any, *arguments: Any, **named: Any) -> Any:
        calls.append(name)
        return original(self, *arguments, **named)

    def use() -> None:
        sent = commands.Basic.Ack(7)
        read = frame.unmarshal(frame.marshal(sent, 1))[2]
        assert read.delivery_tag == 7

    use()
    assert calls == []
    monkeypatch.setattr(cls, name, patched, raising=False)
    use()
    wanted = [] if (owner, name) == ("Frame", "__init__") else [name]
    assert calls[:1] == wanted
    monkeypatch.undo()
    fast = status().fast
    use()
    assert status().fast == fast + 2 + slots.ON


@pytest.mark.parametrize(
    ("module", "name"), [(decode, "short_str"), (encode, "short_string"), (frame, "_unmarshal_method_frame")]
)
def test_a_function_of_pamqp_that_is_patched_later_is_called(
    status: Any, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    calls: list[str] = []
    original = getattr(module, name)

    def patched(*arguments: Any) -> Any:
        calls.append(name)
        return original(*arguments)

    monkeypatch.setattr(module, name, patched)
    table = "METHODS"
    if hasattr(module, table):
        changed = {
            key: patched if value is original else value for key, value in getattr(module, table).items()
        }
        monkeypatch.setattr(module, table, changed)
    frame.unmarshal(frame.marshal(commands.Basic.Publish(routing_key="key"), 1))
    assert calls


def test_the_switch_for_old_brokers_is_heeded(status: Any) -> None:
    sent = header.ContentHeader(0, 0, commands.Basic.Properties(headers={"n": 60000}))
    assert b"\x01nu\xea\x60" in frame.marshal(sent, 1)
    encode.support_deprecated_rabbitmq(True)
    try:
        assert b"\x01nI\x00\x00\xea\x60" in frame.marshal(sent, 1)
    finally:
        encode.support_deprecated_rabbitmq(False)


# -- subclasses, sharing, collecting


@replaces
def test_a_class_derived_from_properties_is_written_fast_unless_it_changes_how(status: Any) -> None:
    class Own(commands.Basic.Properties):
        pass

    class Other(commands.Basic.Properties):
        def marshal(self) -> bytes:
            return b"\0\0"

    plain = frame.marshal(header.ContentHeader(0, 1, commands.Basic.Properties(app_id="a")), 1)
    assert frame.marshal(header.ContentHeader(0, 1, Own(app_id="a")), 1) == plain
    assert status().fallbacks == {}
    assert frame.marshal(header.ContentHeader(0, 1, Other(app_id="a")), 1) != plain
    assert status().fallbacks == {"pamqp.frame.marshal: class": 1}


def test_a_new_table_is_made_where_none_is_given(status: Any) -> None:
    one, other = commands.Queue.Declare(), commands.Queue.Declare(arguments=None)
    assert one.arguments == other.arguments == {}
    assert one.arguments is not other.arguments
    mine: dict[str, Any] = {"x": 1}
    assert commands.Queue.Declare(arguments=mine).arguments is mine


def test_finalizers_may_call_in_the_middle_of_a_call(status: Any) -> None:
    octets = frame.marshal(header.ContentHeader(0, 1, commands.Basic.Properties(headers=HEADERS)), 1)
    seen: list[Any] = []

    class Loop:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            seen.append(frame.unmarshal(octets)[2].properties.headers)

    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(50):
            Loop()
            assert frame.unmarshal(octets)[2].properties.headers == HEADERS
    finally:
        gc.set_threshold(*thresholds)
    gc.collect()  # without a global lock, thresholds alone do not make it run
    assert seen
    assert all(headers == HEADERS for headers in seen)


def test_threads_do_not_get_in_each_others_way(status: Any) -> None:
    faults: list[Any] = []

    def work(number: int) -> None:
        for count in range(300):
            sent = header.ContentHeader(
                0, count, commands.Basic.Properties(headers={f"k{number}": f"v{number}{count}"})
            )
            read = frame.unmarshal(frame.marshal(sent, number))
            if (read[1], read[2].properties.headers) != (number, sent.properties.headers):
                faults.append(read)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


# -- tolerant


@replaces
def test_a_frame_that_is_damaged_behind_tables_nested_without_end_is_refused_as_pamqp_refuses_frames() -> (
    None
):
    """A user id that is cut off comes behind the headers: no tolerance helps."""
    table = b""
    for _ in range(5000):
        table = b"\1aF" + len(table).to_bytes(4, "big") + table
    payload = b"\0\x3c\0\0" + bytes(8) + b"\x20\x10" + len(table).to_bytes(4, "big") + table + b"\x09"
    octets = b"\2\0\1" + len(payload).to_bytes(4, "big") + payload + b"\xce"
    with compat.installed("pamqp"), pytest.raises(RecursionError):
        frame.unmarshal(octets)
    with compat.installed("pamqp", tolerant=True), pytest.raises(exceptions.UnmarshalingException):
        frame.unmarshal(octets)


@replaces
def test_flags_without_end_are_refused_if_tolerant() -> None:
    payload = b"\0\x3c\0\0" + bytes(8) + b"\0\1" * 1000 + b"\0\0"
    octets = b"\2\0\1" + len(payload).to_bytes(4, "big") + payload + b"\xce"
    with compat.installed("pamqp", tolerant=True):
        with pytest.raises(exceptions.UnmarshalingException) as refused:
            frame.unmarshal(octets)
        text = "Could not unmarshal ContentHeader frame: Content header has more than 64 words of flags"
        assert str(refused.value) == text
        sound = b"\0\x3c\0\0" + bytes(8) + b"\x00\x01\0\0"
        assert frame.unmarshal(b"\2\0\1\0\0\0\x10" + sound + b"\xce")[2].body_size == 0
        frame.unmarshal(
            frame.marshal(header.ContentHeader(0, 1, commands.Basic.Properties(headers=HEADERS)), 1)
        )
        assert compat.status()["pamqp"].fallbacks == {
            "pamqp.frame.unmarshal: further flags": 2,
        }
