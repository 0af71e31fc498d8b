"""What somebody replaced, before `install` or after, stays and is called; the status names the former."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from support.compat.uses import (
    amqp_reads,
    amqp_writes,
    owner_of,
    pamqp_reads,
    pamqp_writes,
    pika_receives,
    pika_writes,
    wrapped,
)
from support.marks import replaces

from amqpcodec import compat

pytestmark = replaces


@pytest.mark.parametrize(
    ("path", "use"),
    [
        ("pamqp.frame:unmarshal", pamqp_reads),
        ("pamqp.frame:marshal", pamqp_writes),
        ("pamqp.decode:by_type", pamqp_reads),
        ("pamqp.base:Frame.unmarshal", pamqp_reads),
        ("pamqp.encode:encode_table_value", pamqp_writes),
        ("pamqp.header:ContentHeader.marshal", pamqp_writes),
        ("pika.spec:Basic.Ack.encode", pika_writes),
        ("pika.frame:Body.marshal", pika_writes),
        ("pika.data:encode_value", pika_writes),
        ("pika.connection:Connection._read_frame", pika_receives),
        ("pika.connection:Connection._on_data_available", pika_receives),
        ("amqp.serialization:_write_item", amqp_writes),
        ("amqp.serialization:dumps", amqp_writes),
        ("amqp.serialization:GenericContent._serialize_properties", amqp_writes),
        ("amqp.serialization:loads", amqp_reads),
    ],
)
def test_a_function_replaced_before_is_called_and_named(
    monkeypatch: pytest.MonkeyPatch, path: str, use: Callable[[], None]
) -> None:
    library = path.partition(".")[0]
    pytest.importorskip(library)
    calls: list[str] = []
    owner, name = owner_of(path)
    replacing = wrapped(getattr(owner, name), calls)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, replacing)
        use()
        alone = list(calls)
        loops = library == "pika"
        with compat.installed(library, loops=loops) as given:
            calls.clear()
            use()
            assert getattr(owner, name) is replacing or name in ("loads", "dumps")
        assert calls == alone != []
    assert "was replaced before" in given[library].stock.values()
    with compat.installed(library, loops=loops) as given:
        assert "was replaced before" not in given[library].stock.values()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("pamqp.commands:Basic.Publish.index", 7),
        ("pamqp.commands:Basic.Publish._exchange", "longstr"),
        ("pamqp.commands:Basic.Publish.__init__.__defaults__", (0, "", "", False, 0)),
        ("pamqp.commands:Basic.Publish", None),
        ("pamqp.commands:Basic.Properties.flags", {}),
        ("pika.spec:Basic.Reject.INDEX", 7),
        ("pika.spec:Tx.Commit", None),
    ],
)
def test_a_class_in_which_data_were_changed_before_stays(
    monkeypatch: pytest.MonkeyPatch, path: str, value: Any
) -> None:
    library = path.partition(".")[0]
    pytest.importorskip(library)
    owner, name = owner_of(path)
    monkeypatch.setattr(owner, name, value)
    with compat.installed(library) as given:
        left = {each for each, reason in given[library].stock.items() if reason == "was replaced before"}
        assert left == {".".join(path.partition(":")[2].split(".")[:2])}


@pytest.mark.parametrize("path", ["pamqp.commands:Basic.Publish", "pika.spec:Basic.Reject"])
def test_a_class_that_a_class_of_somebody_else_stands_for_stays(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    library = path.partition(".")[0]
    pytest.importorskip(library)
    owner, name = owner_of(path)
    monkeypatch.setattr(owner, name, type(name, (getattr(owner, name),), {"__slots__": ()}))
    with compat.installed(library) as given:
        assert given[library].stock[f"Basic.{name}"] == "was replaced before"


@pytest.mark.parametrize("table", ["pamqp.commands:INDEX_MAPPING", "pika.spec:methods", "pika.spec:props"])
def test_a_class_in_whose_place_its_index_leads_to_another_stays(
    monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    library = table.partition(".")[0]
    pytest.importorskip(library)
    owner, name = owner_of(table)
    ((index, cls), (_, other)) = [*getattr(owner, name).items(), (0, int)][:2]
    monkeypatch.setitem(getattr(owner, name), index, other)
    with compat.installed(library) as given:
        assert given[library].stock[cls.__qualname__] == "was replaced before"


@pytest.mark.parametrize("when", ["before", "after"])
def test_integers_get_the_tags_of_the_older_rules_of_pamqp_whenever_these_are_asked_for(when: str) -> None:
    pytest.importorskip("pamqp")
    encode, frame = import_module("pamqp.encode"), import_module("pamqp.frame")
    properties = import_module("pamqp.commands").Basic.Properties(headers={"a": 40000})
    header = import_module("pamqp.header").ContentHeader(0, 1, properties)
    try:
        if when == "before":
            encode.support_deprecated_rabbitmq()
        with compat.installed("pamqp") as given:
            encode.support_deprecated_rabbitmq()
            octets = frame.marshal(header, 1)
            assert given["pamqp"].active
        assert octets == frame.marshal(header, 1)
        assert b"\1aI\0\0\x9c\x40" in octets
    finally:
        encode.support_deprecated_rabbitmq(False)


@pytest.mark.parametrize(
    "path",
    [
        "amqp.serialization:loads", "amqp.serialization:GenericContent._serialize_properties",
        "amqp.connection:frame_handler", "amqp.method_framing:frame_writer", "pamqp.frame:marshal",
        "pika.frame:decode_frame",
    ],
)  # fmt: skip
def test_a_stand_in_that_has_no_name_leaves_the_rest_accelerated(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    library = path.partition(".")[0]
    pytest.importorskip(library)
    owner, name = owner_of(path)
    replacing = Callback(getattr(owner, name))
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, replacing)
        with compat.installed(library) as given:
            assert given[library].active
            assert getattr(owner, name) is replacing


@pytest.mark.parametrize(
    ("library", "path"),
    [
        ("aiormq", "aiormq.connection:FrameReceiver.get_frame"),
        ("amqpstorm", "amqpstorm.connection:Connection._read_buffer"),
    ],
)
def test_a_read_loop_that_was_wrapped_before_stays(
    monkeypatch: pytest.MonkeyPatch, library: str, path: str
) -> None:
    pytest.importorskip(library)
    owner, name = owner_of(path)
    replacing = wrapped(getattr(owner, name), [])
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, replacing)
        with compat.installed("pamqp") as given:
            assert getattr(owner, name) is replacing
        assert given["pamqp"].stock[path.replace(":", ".")] == "was replaced before"


class Callback:
    """What is called like a function, and is none."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


@pytest.mark.parametrize(
    "given", [lambda function: wrapped(function, []), Callback], ids=["function", "object"]
)
@pytest.mark.parametrize("before", [True, False])
def test_makers_of_frame_functions_may_give_functions_of_somebody_else(
    monkeypatch: pytest.MonkeyPatch, given: Callable[[Any], Any], before: bool
) -> None:
    pytest.importorskip("amqp")
    from amqpcodec.compat import _amqp
    from amqpcodec.compat._patches import Options
    from amqpcodec.compat._relied import recognise

    framing = import_module("amqp.method_framing")
    connection = SimpleNamespace(frame_max=131072, bytes_recv=0, bytes_sent=0)
    transport = SimpleNamespace(write=lambda octets: None)
    for name in ("frame_handler", "frame_writer"):
        stock = getattr(framing, name)
        if before:
            monkeypatch.setattr(framing, name, lambda *arguments, stock=stock: given(stock(*arguments)))
    framed = _amqp.fast(Options(recognise("amqp"))).framing
    assert framed is not None
    handler = framed.frame_handler(connection, lambda *arguments: None)
    writer = framed.frame_writer(connection, transport)
    assert handler((8, 0, b"")) is False
    writer(8, 0, None, None, None)
    kind = "FastFunction" if not before else type(given(len)).__name__
    assert type(handler).__name__ == type(writer).__name__ == kind


@pytest.mark.parametrize("path", ["header:ContentHeader", "body:ContentBody", "heartbeat:Heartbeat"])
def test_a_class_of_frames_replaced_later_is_made(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    pytest.importorskip("pamqp")
    owner, name = owner_of(f"pamqp.{path}")
    frame = import_module("pamqp.frame")
    octets = {
        "ContentHeader": b"\2\0\1\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\0\1\0\0\xce",
        "ContentBody": b"\3\0\1\0\0\0\1a\xce",
        "Heartbeat": b"\x08\0\0\0\0\0\0\xce",
    }[name]
    derived = type(name, (getattr(owner, name),), {})
    with compat.installed("pamqp"):
        monkeypatch.setattr(owner, name, derived)
        assert type(frame.unmarshal(octets)[2]) is derived


def test_other_flags_of_properties_count(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pamqp")
    frame, properties = import_module("pamqp.frame"), import_module("pamqp.commands").Basic.Properties
    header = import_module("pamqp.header").ContentHeader(0, 1, properties(app_id="a"))
    with compat.installed("pamqp"):
        monkeypatch.setitem(properties.flags, "app_id", 4)
        octets = frame.marshal(header, 1)
    assert octets == frame.marshal(header, 1)
    assert octets[19:21] == b"\0\4"
