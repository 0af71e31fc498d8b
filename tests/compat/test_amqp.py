"""py-amqp accelerated: where its names are bound, what connections keep, and who wins."""

from __future__ import annotations

import pickle
import struct
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from support.encoder_values import BytesChild
from support.marks import replaces

from amqpcodec import compat
from amqpcodec.compat.kombu import transport_options

amqp = pytest.importorskip("amqp")
serialization = pytest.importorskip("amqp.serialization")
method_framing = pytest.importorskip("amqp.method_framing")
connections = pytest.importorskip("amqp.connection")
abstract_channel = pytest.importorskip("amqp.abstract_channel")
transports = pytest.importorskip("amqp.transport")

DELIVER = struct.pack("!HH", 60, 60) + b"\5ctag1" + struct.pack("!QB", 7, 0) + b"\2ex\3key"
HEADERS = {"count": 5, "name": "x", "deep": {"list": [1, True, None, 1.5]}}
MESSAGE = {"content_type": "text/plain", "delivery_mode": 2, "application_headers": HEADERS}


@pytest.fixture
def status() -> Iterator[Callable[[], compat.Status]]:
    """py-amqp accelerated, and how it is getting on."""
    with compat.installed("amqp"):
        yield lambda: compat.status()["amqp"]


def _frame(kind: int, payload: bytes, channel: int = 1) -> bytes:
    return struct.pack("!BHI", kind, channel, len(payload)) + payload + b"\xce"


def _header(size: int) -> bytes:
    message = amqp.Message(**MESSAGE)
    return struct.pack("!HHQ", 60, 0, size) + message._serialize_properties()


def _names() -> dict[str, Any]:
    """Every name through which py-amqp calls what is replaced."""
    return {
        "serialization.loads": serialization.loads,
        "serialization.dumps": serialization.dumps,
        "abstract_channel.loads": abstract_channel.loads,
        "abstract_channel.dumps": abstract_channel.dumps,
        "serialization.decode_properties_basic": serialization.decode_properties_basic,
        "PROPERTY_CLASSES[60]": serialization.PROPERTY_CLASSES[60],
        "_serialize_properties": vars(serialization.GenericContent)["_serialize_properties"],
        "method_framing.frame_handler": method_framing.frame_handler,
        "connection.frame_handler": connections.frame_handler,
        "method_framing.frame_writer": method_framing.frame_writer,
        "connection.frame_writer": connections.frame_writer,
        "default of frame_handler": connections.Connection.__init__.__defaults__[-2],
        "default of frame_writer": connections.Connection.__init__.__defaults__[-1],
    }


@replaces
def test_every_name_that_is_bound_early_is_replaced_and_put_back() -> None:
    before = _names()
    with compat.installed("amqp") as status:
        during = _names()
        assert not [name for name in before if before[name] is during[name]]
        assert len(status["amqp"].originals) == 13  # the defaults are one; calls of `Message` are one more
    assert _names() == before


@replaces
def test_a_connection_made_before_keeps_the_functions_it_was_made_with() -> None:
    connection = amqp.Connection()
    before = (connection.frame_handler_cls, connection.frame_writer_cls)
    with compat.installed("amqp"):
        assert (connection.frame_handler_cls, connection.frame_writer_cls) == before
        assert amqp.Connection().frame_writer_cls is not before[1]


class Wire:
    """A connection that is not connected, and what its writer writes."""

    def __init__(self, frame_max: int = 131072) -> None:
        self.writes: list[Any] = []
        self.connection = SimpleNamespace(frame_max=frame_max, bytes_sent=0, bytes_recv=0)
        self.calls: list[Any] = []
        self.write_frame = method_framing.frame_writer(
            self.connection, SimpleNamespace(write=self.writes.append)
        )
        self.on_frame = method_framing.frame_handler(self.connection, lambda *call: self.calls.append(call))

    @property
    def octets(self) -> bytes:
        return b"".join(map(bytes, self.writes))


@replaces
def test_ordinary_traffic_never_falls_back(status: Callable[[], compat.Status]) -> None:
    wire = Wire()
    arguments = abstract_channel.dumps("Bssbb", (0, "ex", "key", False, False))
    for content in (
        amqp.Message("text", **MESSAGE),
        amqp.Message(b"x" * 300_000, **MESSAGE),
        amqp.Message(b""),
    ):
        wire.write_frame(1, 1, (60, 40), arguments, content)
    wire.write_frame(1, 1, (60, 80), abstract_channel.dumps("Lb", (1, False)), None)
    wire.write_frame(1, 1, (20, 10), "", None)
    wire.write_frame(8, 0, None, None, None)
    for frame in ((1, 1, DELIVER), (2, 1, _header(3)), (3, 1, b"a"), (8, 0, b""), (3, 1, b"bc"), (2, 2, b"")):
        if frame[1] == 1 or frame[0] == 8:
            wire.on_frame(frame)
    [(channel, signature, payload, message)] = wire.calls
    assert (channel, signature, message.body) == (1, (60, 60), b"abc")
    assert abstract_channel.loads("sLbss", payload, 4)[0] == ["ctag1", 7, False, "ex", "key"]
    assert message.properties == MESSAGE
    assert (wire.connection.bytes_sent, wire.connection.bytes_recv) == (6, 5)
    assert status().fallbacks == {}
    assert status().fast > 10


def test_decimals_never_fall_back(status: Callable[[], compat.Status]) -> None:
    octets = abstract_channel.dumps("F", ({"price": Decimal("12.30"), "small": Decimal("-0.001")},))
    assert repr(abstract_channel.loads("F", octets, 0)[0][0]["price"]) == "Decimal('12.3')"
    assert status().fallbacks == {}


def test_the_handshake_never_falls_back(status: Callable[[], compat.Status]) -> None:
    properties = {"product": "py-amqp", "capabilities": {"consumer_cancel_notify": True}}
    octets = abstract_channel.dumps("FsSs", (properties, b"PLAIN", b"\0guest\0guest", "en_US"))
    assert abstract_channel.loads("FsSs", octets, 0) == (
        [properties, "PLAIN", "\0guest\0guest", "en_US"],
        len(octets),
    )
    assert abstract_channel.dumps("BlB", (2047, 131072, 60)) == b"\x07\xff\0\2\0\0\0\x3c"
    assert abstract_channel.dumps("ssb", ("/", "", False)) == b"\1/\0\0"
    assert abstract_channel.dumps("BsssbF", (0, None, "b", "c", None, None)) == b"\0\0\0\1b\1c\0\0\0\0\0"
    assert status().fallbacks == {}


def test_frames_that_go_out_at_once_are_handed_over_as_a_view_and_large_ones_as_bytes() -> None:
    def seen(frame_max: int) -> list[tuple[type, bytes]]:
        wire = Wire(frame_max)
        wire.write_frame(1, 1, (60, 40), b"\0\0\2ex\3key\0", amqp.Message(b"x" * 500, **MESSAGE))
        return [(type(octets), bytes(octets)) for octets in wire.writes]

    for frame_max, kind in ((131072, memoryview), (200, bytes)):
        stock = seen(frame_max)
        with compat.installed("amqp"):
            assert seen(frame_max) == stock
        assert {written[0] for written in stock} == {kind}


def test_the_lock_of_a_connection_is_that_of_the_original_function(
    status: Callable[[], compat.Status],
) -> None:
    wire = Wire()
    lock = dict(zip(wire.write_frame.__code__.co_freevars, wire.write_frame.__closure__, strict=True))
    held = lock["buffer_lock"].cell_contents
    writing = threading.Thread(target=wire.write_frame, args=(8, 0, None, None, None))
    with held:
        writing.start()
        writing.join(0.1)
        assert wire.writes == []
    writing.join()
    assert len(wire.writes) == 1


def test_an_error_of_the_transport_gives_the_lock_back() -> None:
    def refuse(octets: Any) -> None:
        raise OSError("gone")

    connection = SimpleNamespace(frame_max=131072, bytes_sent=0)
    with compat.installed("amqp"):
        write = method_framing.frame_writer(connection, SimpleNamespace(write=refuse))
        for _ in range(2):
            with pytest.raises(OSError, match="gone"):
                write(8, 0, None, None, None)
    assert connection.bytes_sent == 0


@replaces
def test_either_function_goes_on_where_the_other_left_off(status: Callable[[], compat.Status]) -> None:
    wire = Wire()
    wire.on_frame((1, 1, DELIVER))
    wire.on_frame((2, 1, BytesChild(_header(4))))  # not exactly bytes, so py-amqp's own
    wire.on_frame((3, 1, b"ab"))
    wire.on_frame((3, 1, BytesChild(b"cd")))
    assert wire.calls[0][3].body == b"abcd"
    assert status().fallbacks == {"on_frame": 2, "decode_properties_basic": 1, "loads": 1}
    with pytest.raises(amqp.exceptions.UnexpectedFrame, match="Received frame 3 while expecting type: 1"):
        wire.on_frame((3, 1, b""))


# -- others who replace things later


def test_a_patch_made_later_wins(
    status: Callable[[], compat.Status], monkeypatch: pytest.MonkeyPatch
) -> None:
    def seven(octets: bytes, offset: int) -> Any:
        return 7, offset + 1

    monkeypatch.setattr(serialization, "_read_item", seven)
    assert serialization.loads("F", b"\0\0\0\3\1ax", 0) == ([{"a": 7}], 7)
    monkeypatch.setattr(serialization, "_write_item", lambda value, write, bits: write(b"V"))
    assert serialization.dumps("F", ({"a": 1},)) == b"\0\0\0\3\1aV"
    wire = Wire()
    message = amqp.Message(b"x", content_type="a")
    monkeypatch.setattr(amqp.Message, "_serialize_properties", lambda self: b"\0\0", raising=False)
    wire.write_frame(1, 1, (60, 40), b"", message)
    assert wire.octets.split(b"\xce")[1] == _frame(2, struct.pack("!HHQH", 60, 0, 1, 0))[:-1]


def test_what_reads_properties_may_be_replaced_later(
    status: Callable[[], compat.Status], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(serialization.PROPERTY_CLASSES, 60, lambda octets, offset: ({"own": 1}, offset))
    wire = Wire()
    wire.on_frame((1, 1, DELIVER))
    wire.on_frame((2, 1, _header(0)))
    assert wire.calls[0][3].properties == {"own": 1}


@pytest.mark.parametrize(
    "owner", [amqp.Message, serialization.GenericContent], ids=lambda owner: owner.__name__
)
def test_a_constructor_replaced_later_is_called(
    owner: Any, status: Callable[[], compat.Status], monkeypatch: pytest.MonkeyPatch
) -> None:
    stock = owner.__init__

    def construct(self: Any, *given: Any, **named: Any) -> None:
        stock(self, *given, **named)
        self.properties["own"] = 1

    assert amqp.Message("x", type="a").properties == {"type": "a"}
    monkeypatch.setattr(owner, "__init__", construct)
    assert amqp.Message("x", type="a").properties == {"type": "a", "own": 1}
    wire = Wire()
    wire.on_frame((1, 1, DELIVER))
    monkeypatch.undo()
    assert amqp.Message("x", type="a").properties == {"type": "a"}


def test_a_message_class_of_ones_own_is_asked(status: Callable[[], compat.Status]) -> None:
    class Shouting(amqp.Message):  # type: ignore[misc, name-defined]
        def _serialize_properties(self) -> bytes:
            return b"\0\0"

    wire = Wire()
    wire.write_frame(1, 1, (60, 40), b"", Shouting(b"x", content_type="a"))
    assert b"\xce" + _frame(2, struct.pack("!HHQH", 60, 0, 1, 0)) in wire.octets


# -- hostile octets


@replaces
def test_damage_behind_tables_that_nest_too_deep_is_a_syntax_error_if_tolerant() -> None:
    octets = b""
    for _ in range(3000):
        octets = b"F" + struct.pack("!I", len(octets) + 1) + b"\0" + octets if octets else b"V"
    octets = struct.pack("!I", len(octets) + 1) + b"\0" + octets
    with compat.installed("amqp"), pytest.raises(RecursionError):
        serialization.loads("F", octets, 0)
    refused = pytest.raises(amqp.exceptions.FrameSyntaxError, match=r"^tables nested too deep$")
    with compat.installed("amqp", tolerant=True), refused:
        serialization.loads("FS", octets + b"\xff", 0)


# -- finalizers


def test_a_slot_that_a_finalizer_deletes_meanwhile_is_filled_again(
    status: Callable[[], compat.Status],
) -> None:
    wire = Wire()
    wire.on_frame((1, 1, DELIVER))
    cells = dict(zip(wire.on_frame.__code__.co_freevars, wire.on_frame.__closure__, strict=True))
    message = cells["partial_messages"].cell_contents[1]

    class Deleting:
        def __del__(self) -> None:
            del message.ready

    message.properties = {"last": Deleting()}
    wire.on_frame((2, 1, struct.pack("!HHQH", 60, 0, 0, 0)))
    assert message.ready is True
    assert message.properties == {}


# -- kombu


@replaces
def test_options_for_kombu_serve_a_connection_and_replace_nothing() -> None:
    before = _names()
    connection = amqp.Connection(**pickle.loads(pickle.dumps(transport_options())))
    assert _names() == before
    writes: list[Any] = []
    state = SimpleNamespace(frame_max=131072, bytes_sent=0)
    write = connection.frame_writer_cls(state, SimpleNamespace(write=writes.append))
    write(1, 1, (60, 40), b"\0\0\0\0\0", amqp.Message(b"x", **MESSAGE))
    assert "Fast" in type(write).__name__
    wire = Wire()
    wire.write_frame(1, 1, (60, 40), b"\0\0\0\0\0", amqp.Message(b"x", **MESSAGE))
    assert bytes(writes[0]) == wire.octets


@replaces
def test_options_are_passed_on_by_kombu() -> None:
    kombu = pytest.importorskip("kombu")
    options = transport_options()
    connection = kombu.Connection("amqp://127.0.0.1:1//", transport_options=options)
    made: list[Any] = []

    class Connection(connection.transport.Connection):  # type: ignore[misc, name-defined]
        def connect(self) -> None:
            made.append((self.frame_handler_cls, self.frame_writer_cls))

    connection.transport.Connection = Connection
    connection.transport.establish_connection()
    assert made == [(options["frame_handler"], options["frame_writer"])]
