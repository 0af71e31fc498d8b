"""RabbitMQ, greeted by clients with older versions: what it answers is no fault."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support import make_capture as make
from support.campaign import in_full
from support.columns import BUILDS

from amqpcodec import amqp08, amqp09, arrow, capture, rabbitmq
from amqpcodec._columns.schemas import TABLES
from amqpcodec._columns.sinks import FrameSink
from amqpcodec.capture import CapturedFrame
from amqpcodec.cli import main

CLIENT, SERVER = make.CLIENT, make.SERVER
# What Net::RabbitMQ (0-9) and php-amqplib (0-8) ask for beyond their version, and what RabbitMQ answers.
EXTENSIONS = (
    (rabbitmq.Confirm.Select(), rabbitmq.Confirm.SelectOk()),
    (rabbitmq.Exchange.Bind("a", "b", "k"), rabbitmq.Exchange.BindOk()),
    (rabbitmq.Exchange.Unbind("a", "b", "k"), rabbitmq.Exchange.UnbindOk()),
    (rabbitmq.Basic.Recover(True), rabbitmq.Basic.RecoverOk()),
)
NAMES = [method.spec.name for pair in EXTENSIONS for method in pair]


def talk(old: ModuleType, product: str = "RabbitMQ") -> bytes:
    """A capture of a connection whose client greets with a version."""
    version = (8, 0) if old is amqp08 else (0, 9)
    ask = old.Access.Request("/data", False, True, True, True, True)
    start = old.Connection.Start(*version, {"product": product}, b"PLAIN", b"en_US")
    truth = make.Truth()
    each = make.Talk(truth, 0, (1, 1))
    each.open()
    each.send(CLIENT, old.protocol_header())
    each.send(SERVER, old.encode_method(0, start))
    each.send(CLIENT, old.encode_method(0, old.Connection.StartOk({}, "PLAIN", b"\0guest\0secret", "en_US")))
    each.send(SERVER, old.encode_method(0, old.Connection.Tune(0, 4096, 0)))
    each.send(CLIENT, old.encode_method(0, old.Connection.TuneOk(0, 4096, 0)))
    each.send(CLIENT, old.encode_method(1, old.Channel.Open()))
    each.send(SERVER, old.encode_method(1, old.Channel.OpenOk()))
    each.send(CLIENT, old.encode_method(1, ask))
    each.send(SERVER, old.encode_method(1, old.Access.RequestOk(1)))
    for asked, answered in EXTENSIONS:
        each.send(CLIENT, rabbitmq.encode_method(1, asked))
        each.send(SERVER, rabbitmq.encode_method(1, answered))
        each.send(CLIENT, old.encode_message(1, old.Basic.Publish(), None, b"body"))
    each.send(CLIENT, old.encode_method(0, old.Connection.Close(200, "bye", 0, 0)))
    each.send(SERVER, old.encode_method(0, old.Connection.CloseOk()))
    each.close()
    return make.pcap(truth.packets)


def rows(octets: bytes, table: str, build: str, **options: Any) -> list[dict[str, Any]]:
    batches = arrow.read_capture(io.BytesIO(octets), table, _impl=build, **options)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture(params=[amqp08, amqp09], ids=["0-8", "0-9"])
def old(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


def test_what_it_answered_is_decoded(old: ModuleType) -> None:
    items = list(capture.read_frames(io.BytesIO(talk(old))))
    assert all(isinstance(item, CapturedFrame) for item in items)
    names = [item.frame.payload.spec.name for item in items if item.octets[0] == 1]
    assert [name for name in names if name in NAMES] == NAMES
    assert {"access.request", "access.request-ok", "connection.close", "channel.open-ok"} <= set(names)


def test_the_dialect_of_each_frame_is_reported(old: ModuleType) -> None:
    items = list(capture.read_frames(io.BytesIO(talk(old))))
    by_name = {item.frame.payload.spec.name: item.dialect for item in items if item.octets[0] == 1}
    spoken = {"connection.start": old.DIALECT.name, "confirm.select": "rabbitmq-0-9-1"}
    spoken["access.request"] = old.DIALECT.name
    spoken["connection.close"] = "amqp-0-8" if old is amqp08 else "rabbitmq-0-9-1"
    assert spoken.items() <= by_name.items()
    assert items[0].connection.dialect == spoken["connection.close"]


@pytest.mark.parametrize("build", BUILDS)
def test_every_table_has_it(build: str, old: ModuleType) -> None:
    octets = talk(old)
    assert rows(octets, "errors", build) == []
    [connection] = rows(octets, "connections", build)
    assert connection["errors"] == 0
    for table in ("frames", "methods"):
        found = rows(octets, table, build, _check_all=True)
        assert [row["name"] for row in found if row["name"] in NAMES] == NAMES
        assert not any(row["_error"] for row in found)
    messages = rows(octets, "messages", build, _check_all=True)
    assert [(row["body"], row["_error"]) for row in messages] == [(b"body", None)] * len(EXTENSIONS)


@pytest.mark.parametrize("table", TABLES)
def test_the_builds_agree(table: str, old: ModuleType) -> None:
    for octets in (talk(old), talk(old, "qpid"), talk(old)[:-1]):
        first, *others = (rows(octets, table, build) for build in BUILDS)
        assert first or table == "errors"
        assert all(other == first for other in others)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("table", TABLES)
def test_a_state_keeps_it(build: str, table: str, old: ModuleType) -> None:
    octets = talk(old)
    whole = rows(octets, table, build)
    for cut in range(500, len(octets), in_full(331, 997)):
        state, found = None, []
        for number, end in enumerate((cut, None)):
            other = BUILDS[(BUILDS.index(build) + number) % len(BUILDS)]
            session = arrow.CaptureSession(table, state=state, _impl=other)
            found += [
                row for batch in session.read(io.BytesIO(octets), "t", end) for row in batch.to_pylist()
            ]
            state = session.suspend()
        last = arrow.CaptureSession(table, state=state, _impl=build)
        found += [row for batch in last.finish() for row in batch.to_pylist()]
        assert [{**row, "file": None} for row in found] == [{**row, "file": None} for row in whole]


def test_other_brokers_are_held_to_their_version(old: ModuleType) -> None:
    items = list(capture.read_frames(io.BytesIO(talk(old, "qpid"))))
    assert len([item for item in items if not isinstance(item, CapturedFrame)]) == len(NAMES)


def test_a_dialect_that_is_asked_for_stays(old: ModuleType) -> None:
    items = capture.read_frames(io.BytesIO(talk(old)), dialect=old.DIALECT.name)
    assert len([item for item in items if not isinstance(item, CapturedFrame)]) == len(NAMES)


def test_decode_and_stats_find_no_fault(
    old: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "talk.pcap"
    path.write_bytes(talk(old))
    assert main(["decode", "--format", "jsonl", str(path)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["method"] for line in lines if line.get("method") in NAMES] == NAMES
    assert main(["stats", str(path)]) == 0


def test_a_damaged_method_of_its_own_is_an_error_of_that_method(old: ModuleType) -> None:
    octets = bytearray(talk(old))
    at = octets.index(rabbitmq.encode_method(1, EXTENSIONS[1][0]))
    octets[at + 13] = 200  # a string longer than its frame
    found = [item for item in capture.read_frames(io.BytesIO(octets)) if not isinstance(item, CapturedFrame)]
    assert [fault.message.split(":")[0] for fault in found] == ["exchange.bind.destination"]
    for table in ("methods", "errors"):
        first, *others = (rows(bytes(octets), table, build) for build in BUILDS)
        assert any(row["_error"] for row in first) if table == "methods" else len(first) == 1
        assert all(other == first for other in others)


def test_columns_read_each_frame_in_the_dialect_that_it_came_in(
    monkeypatch: pytest.MonkeyPatch, old: ModuleType
) -> None:
    read: list[tuple[int, str]] = []
    frame = FrameSink.frame

    def note(self: Any, origin: Any, octets: bytes, dialect: ModuleType) -> None:
        read.append((origin.packet, dialect.DIALECT.name))
        frame(self, origin, octets, dialect)

    monkeypatch.setattr(FrameSink, "frame", note)
    found = rows(talk(old), "frames", "py")
    items = [(item.packet, item.dialect) for item in capture.read_frames(io.BytesIO(talk(old)))]
    assert read == items
    assert len({dialect for _, dialect in items}) > 1  # connection.start changes it
    assert len(found) == len(items)
