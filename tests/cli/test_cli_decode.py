"""The `amqpcodec decode` command as it is used: arguments in, lines and exit code out."""

from __future__ import annotations

import errno
import gzip
import io
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.command import BUNNY, TXAMQP, Run

from amqpcodec import rabbitmq as amqp
from amqpcodec.capture.model import Endpoint
from amqpcodec.capture.writing import Conversation, PacketWriter
from amqpcodec.cli import inputs

KEYS = [
    "time", "time_ns", "connection", "client", "server", "direction", "packet", "offset", "kind", "type",
    "channel", "size", "class_id", "method_id", "method", "fields", "properties", "body_size", "body",
    "length", "reply_code", "message", "dialect", "file",
]  # fmt: skip


def _raw(tmp_path: Path, *frames: bytes) -> Path:
    path = tmp_path / "stream.amqp"
    path.write_bytes(b"".join(frames))
    return path


def test_one_line_a_frame(run: Run) -> None:
    lines = run(BUNNY)
    assert len(lines) == 155
    ends = r"#0 127\.0\.0\.1:59752 [<>] 127\.0\.0\.1:5672"
    shape = re.compile(rf"2026-11-20 [\d:]{{8}}\.\d{{6}}  {ends}  ch \d+ +[a-z]+")
    assert all(shape.match(line) for line in lines)
    assert lines[0].endswith("> 127.0.0.1:5672  ch 0  protocol  AMQP 0.0.9.1")
    assert any(
        "< 127.0.0.1:5672  ch 0  method    connection.tune channel_max=2047 frame_max" in line
        for line in lines
    )
    assert any("> 127.0.0.1:5672  ch 1  body      3 bytes 'one'" in line for line in lines)
    assert not any("reserved" in line or "ticket" in line for line in lines)


def test_jsonl_always_has_the_same_keys(run: Run) -> None:
    rows = run.rows(BUNNY)
    assert len(rows) == 155
    assert all(list(row) == KEYS for row in rows)
    start = rows[1]
    assert (start["method"], start["class_id"], start["method_id"]) == ("connection.start", 10, 10)
    assert start["direction"] == "s>c"
    assert start["time_ns"] % 1000 == 0
    assert start["time"].endswith("Z")
    assert datetime.fromisoformat(start["time"]).timestamp() == pytest.approx(start["time_ns"] / 1e9)
    header = next(row for row in rows if row["kind"] == "header")
    assert header["properties"]["headers"]["arr"] == [1, "a", {"z": [True]}]
    assert next(row for row in rows if row["kind"] == "body")["body"] == b"one".hex()


def test_credentials_are_hidden_unless_asked_for(run: Run) -> None:
    for form in ("text", "jsonl"):
        shown = "\n".join(run(BUNNY, TXAMQP, "--format", form))
        assert "guest" not in shown.replace("user_id='guest'", "").replace('"user_id": "guest"', "")
        assert "redacted" in shown
    shown = "\n".join(run(BUNNY, "--include-credentials", "--format", "jsonl"))
    assert b"\0guest\0guest".hex() in shown


def test_the_old_dialect_is_recognised_and_can_be_forced(run: Run, tmp_path: Path) -> None:
    assert {row["dialect"] for row in run.rows(TXAMQP)} == {"amqp-0-8"}
    assert {row["dialect"] for row in run.rows(BUNNY)} == {"rabbitmq-0-9-1"}
    path = _raw(tmp_path, amqp.encode_method(1, amqp.Channel.Open()))
    assert {row["dialect"] for row in run.rows("--input", "stream", path, "--dialect", "amqp-0-9-1")} == {
        "amqp-0-9-1"
    }


def test_filters_keep_the_content_of_a_chosen_method(run: Run) -> None:
    rows = run.rows(BUNNY, "--method", "basic.publish")
    assert {row["method"] for row in rows if row["kind"] == "method"} == {"basic.publish"}
    assert {row["kind"] for row in rows} == {"method", "header", "body"}
    assert {row["direction"] for row in rows} == {"c>s"}
    both = run.rows(BUNNY, "--method", "tx.*", "--method", "queue.declare*")
    assert {row["method"].split(".")[0] for row in both} == {"tx", "queue"}
    assert all(row["kind"] == "method" for row in both)
    assert {row["channel"] for row in run.rows(BUNNY, "--channel", "0")} == {0}
    assert run(BUNNY, "--channel", "77") == []


def test_gzip_and_several_files(run: Run, tmp_path: Path) -> None:
    packed = tmp_path / "bunny.pcap.gz"
    packed.write_bytes(gzip.compress(BUNNY.read_bytes()))
    assert len(run(packed, TXAMQP)) == 155 + 87


def test_a_port_without_amqp_is_empty_and_any_port_finds_it(run: Run) -> None:
    assert run(BUNNY, "--port", "5673") == []
    assert len(run(BUNNY, "--port", "any")) == 155
    assert len(run(BUNNY, "--port", "5673", "--port", "5672")) == 155


def test_what_is_no_capture_gets_one_line_and_code_2(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "text\x1b.txt"
    path.write_text("not a capture", encoding="utf-8")
    run(path, code=2)
    assert run.err.count("\n") == 1
    assert "neither pcap nor pcapng" in run.err
    assert "\x1b" not in run.err
    run(tmp_path / "absent", code=2)
    assert run.err.endswith("No such file or directory\n")
    run(tmp_path, code=2)
    assert run.err.count("\n") == 1
    assert len(run(path, BUNNY, code=2)) == 155


def test_faults_are_lines_of_their_own_and_code_1(run: Run, tmp_path: Path) -> None:
    good = amqp.encode_method(1, amqp.Channel.Open())
    path = _raw(tmp_path, good, b"\x01\x00\x01\x00\x00\x00\x04\x00\x3c\x03\xe7\xce", good, b"\x01\x00")
    [_, error, _, lost] = run("--input", "stream", path, code=1)
    assert re.search(r"#0 >  -     error     503 .*\(offset 13, 12 bytes\)", error)
    assert re.search(r"#0 >  -     lost      the stream ends inside this frame \(offset 38, 2 bytes\)", lost)
    [_, error_row, _, lost_row] = run.rows("--input", "stream", path, code=1)
    assert (error_row["kind"], error_row["reply_code"], error_row["offset"], error_row["length"]) == (
        "error",
        503,
        13,
        12,
    )
    assert (error_row["class_id"], error_row["method_id"]) == (60, 999)
    assert (lost_row["kind"], lost_row["direction"], lost_row["message"]) == (
        "lost",
        "c>s",
        "the stream ends inside this frame",
    )
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(BUNNY.read_bytes()[:-5])
    assert "the last record is cut off" in run(cut, code=1)[-1]


def test_nothing_from_the_wire_reaches_the_terminal_unescaped(run: Run, tmp_path: Path) -> None:
    evil = "\x1b]0;title\x07\r\n\u202eabc\x9b"
    table = {evil: evil, "tagged": [evil], "octets": evil.encode()}
    properties = amqp.BasicProperties(headers=table, app_id=evil)
    path = _raw(
        tmp_path,
        amqp.encode_method(1, amqp.Basic.Publish(exchange=evil, routing_key=evil)),
        amqp.encode_header(1, properties, 9),
        amqp.encode_body(1, evil.encode()),
        amqp.encode_method(1, amqp.Queue.Declare(arguments=table)),
    )
    for form in ("text", "jsonl"):
        lines = run("--input", "stream", path, "--format", form)
        assert len(lines) == 4
        assert all(line.isprintable() for line in lines)


def test_octets_that_are_no_text_survive_in_json(run: Run, tmp_path: Path) -> None:
    publish = amqp.Basic.Publish(exchange="\udcff\udc80")
    [row] = run.rows("--input", "stream", _raw(tmp_path, amqp.encode_method(1, publish)))
    assert row["fields"]["exchange"] == "\udcff\udc80"
    assert run.out.isascii()
    [line] = run("--input", "stream", tmp_path / "stream.amqp")
    assert r"exchange='\udcff\udc80'" in line


def _moved(tmp_path: Path, port: int) -> Path:
    path = tmp_path / "moved.pcap"
    path.write_bytes(BUNNY.read_bytes().replace((5672).to_bytes(2), port.to_bytes(2)))
    return path


def test_a_capture_without_amqp_on_the_port_says_so_and_what_to_try(run: Run, tmp_path: Path) -> None:
    path, hint = _moved(tmp_path, 9999), "port 9999 has AMQP: try --port 9999"
    for form in ("text", "jsonl"):
        assert run(path, "--format", form) == []
        assert run.err == f"amqpcodec: {str(path)!r}: no AMQP found on port 5672; {hint}\n"
    assert run(path, "--port", "7", "--port", "5", "--port", "7") == []
    assert run.err.endswith(f": no AMQP found on ports 5, 7; {hint}\n")
    assert len(run(path, "--port", "any")) == 155
    assert run.err == ""
    assert run(path, "--port", "any", "--count") == ["155"]
    assert run.err == ""


def test_a_capture_without_any_amqp_does_not_suggest_to_try_any_port_again(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(BUNNY.read_bytes()[:24])
    assert run(path, "--port", "any") == []
    assert run.err == f"amqpcodec: {str(path)!r}: no AMQP found on any port\n"


def test_amqp_that_filters_leave_out_counts_as_found(run: Run) -> None:
    assert run(BUNNY, "--channel", "77", "--method", "file.*") == []
    assert run.err == ""


def test_tls_is_named_with_what_to_do(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "tls.pcap"
    with path.open("wb") as file:
        ends = Endpoint(bytes((10, 0, 0, 1)), 40000), Endpoint(bytes((10, 0, 0, 9)), 5671)
        conversation = Conversation(PacketWriter(file), *ends, 0, 1)
        conversation.send(0, b"\x16\x03\x01\x00\x05hello", 1)
        conversation.close(2)
    advice = (
        "it looks like TLS, which hides the frames: record where the octets are not encrypted, or decrypt "
    )
    [line] = run(path, "--port", "5671", code=1)
    assert advice in line
    assert run(path, "--port", "any") == []
    nothing, tls = run.err.splitlines()
    assert nothing.endswith("no AMQP found on any port")
    assert f": 1 x not an AMQP connection that can be decoded: {advice}" in tls


def test_each_file_without_amqp_is_named_beside_those_with_it(run: Run, tmp_path: Path) -> None:
    assert len(run(_moved(tmp_path, 9999), BUNNY)) == 155
    assert run.err.count("no AMQP found") == 1
    assert "moved.pcap" in run.err


def test_an_empty_raw_stream_has_no_port_to_speak_of(run: Run, tmp_path: Path) -> None:
    assert run("--input", "stream", _raw(tmp_path)) == []
    assert run.err == ""


@pytest.mark.parametrize("glob", ["basic.publish", "Basic.Publish", "BASIC.PUB*", "Basic.[P]ublish"])
def test_methods_are_chosen_in_any_case(run: Run, glob: str) -> None:
    rows = run.rows(BUNNY, "--method", glob)
    assert {row["method"] for row in rows if row["kind"] == "method"} == {"basic.publish"}


@pytest.mark.parametrize("glob", ["queue.declare-ok", "Queue.DeclareOk", "Queue.Declare-Ok", "Queue.*Ok"])
def test_methods_are_chosen_by_the_names_of_their_classes(run: Run, glob: str) -> None:
    methods = {row["method"] for row in run.rows(BUNNY, "--method", glob)}
    assert "queue.declare-ok" in methods
    assert all(method.startswith("queue.") and method.endswith("-ok") for method in methods)


def test_a_summary_is_all_that_is_printed(run: Run) -> None:
    lines = run(BUNNY, "--summary")
    assert lines[:3] == [
        "frames       155, 105677 bytes in 2.982 s",
        "connections  1 rabbitmq-0-9-1",
        "methods      15 basic.publish, 6 channel.open, 6 channel.open-ok, 6 channel.close, "
        "6 channel.close-ok, 4 basic.get, 4 basic.ack, 3 exchange.declare, 51 others",
    ]
    assert lines[3:7] == [
        "messages     15 basic.publish, 50027 bytes",
        "             3 basic.get-ok, 6 bytes",
        "             1 basic.return, 3 bytes",
        "             1 basic.deliver, 50000 bytes",
    ]
    assert lines[7] == "answers      33 by the server, mean 0.91 ms, slowest 6.02 ms (channel.close)"
    assert lines[8] == "refused      1 channel.close 404 \"NOT_FOUND - no queue 'nope' in vhost '/'\""
    assert lines[-1] == "faults       none"


def test_a_summary_is_of_what_is_chosen(run: Run) -> None:
    lines = run(BUNNY, "--summary", "--method", "basic.nack", "--method", "basic.reject")
    assert lines[0].startswith("frames       2, ")
    assert lines[2] == "methods      1 basic.nack, 1 basic.reject"
    assert run(BUNNY, "--summary", "--limit", "3")[0].startswith("frames       3, ")


def test_summaries_of_several_files_have_their_names(run: Run) -> None:
    lines = run(BUNNY, TXAMQP, "--summary")
    assert [line for line in lines if line.endswith(".pcap")] == [str(BUNNY), str(TXAMQP)]
    assert len([line for line in lines if line.startswith("frames ")]) == 2


def test_a_summary_counts_faults_and_shows_what_was_sent_without_control_characters(
    run: Run, tmp_path: Path
) -> None:
    close = amqp.encode_method(1, amqp.Channel.Close(reply_code=404, reply_text="\x1b[2J"))
    path = _raw(tmp_path, close, b"\x01\x00\x01\x00\x00\x00\x05\x00\x3c\x00\x50\xff\xce")
    lines = run(path, "--input", "stream", "--summary", code=1)
    assert lines[-2:] == ["refused      1 channel.close 404 '\\x1b[2J'", "faults       1 error"]
    assert "answers      none" in lines


@pytest.mark.parametrize(("code", "refused"), [(299, 0), (300, 1)])
def test_a_summary_counts_what_is_refused_by_reply_codes_from_300_on(
    run: Run, tmp_path: Path, code: int, refused: int
) -> None:
    close = amqp.encode_method(1, amqp.Channel.Close(reply_code=code, reply_text="why"))
    lines = run(_raw(tmp_path, close), "--input", "stream", "--summary")
    assert lines.count(f"refused      1 channel.close {code} 'why'") == refused


def test_a_frame_of_another_type_has_its_payload_in_json(run: Run, tmp_path: Path) -> None:
    path = _raw(tmp_path, b"\x04\0\1\0\0\0\x0bout of band\xce")
    [line] = run(path, "--input", "stream", "--format", "jsonl", "--dialect", "amqp-0-8")
    assert json.loads(line)["body"] == b"out of band".hex()


def test_a_summary_in_json_has_the_same_counts(run: Run) -> None:
    [row] = run.rows(BUNNY, "--summary")
    assert (row["file"], row["frames"], row["bytes"]) == (str(BUNNY), 155, 105677)
    assert row["last_ns"] - row["first_ns"] == 2_981_511_000
    assert row["connections"] == {"rabbitmq-0-9-1": 1}
    assert row["methods"]["basic.publish"] == 15
    assert sum(row["methods"].values()) == 101
    assert row["messages"]["basic.publish"] == {"count": 15, "bytes": 50027}
    assert row["answers"] == {
        "count": 33,
        "mean_ns": 906_545,
        "slowest_ns": 6_021_000,
        "slowest": "channel.close",
    }
    assert [(each["reply_code"], each["count"]) for each in row["refused"]] == [(404, 1), (406, 1), (406, 1)]
    assert row["refused"][0]["reply_text"] == "NOT_FOUND - no queue 'nope' in vhost '/'"
    assert row["faults"] == {}


@pytest.mark.parametrize("other", ["--count", "--messages", "--errors"])
def test_a_summary_goes_with_nothing_else_that_is_printed(run: Run, other: str) -> None:
    assert run(BUNNY, "--summary", other, code=2) == []
    assert run.err.startswith("amqpcodec: --summary prints nothing but a summary")


class Interrupted(io.RawIOBase):
    """A file of which all but the beginning is waited for until somebody interrupts."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", 0)
        self._left = 1300

    def fileno(self) -> int:
        return self._file.fileno()

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            raise KeyboardInterrupt
        count = self._file.readinto(memoryview(buffer)[: self._left])
        self._left -= count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def test_what_was_read_before_an_interruption_is_summed_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "open_file", lambda _: Interrupted(BUNNY))
    assert run(BUNNY, "--summary", code=130)[0].startswith("frames       2, ")


def test_a_folder_is_named_as_one_where_the_system_merely_does_not_permit_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(name: str, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", name)  # as Windows answers

    monkeypatch.setattr(inputs, "open", refused, raising=False)
    run(tmp_path, code=2)
    assert "Is a directory; name the files in it" in run.err


def test_an_input_that_cannot_be_read_is_named_with_what_to_do(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "traffic.pcap"
    path.write_bytes(bytes(99))
    run(path, code=2)
    assert run.err.endswith("; the bytes of one direction alone are read with --input stream\n")
    run(tmp_path, code=2)
    assert run.err.endswith("; name the files in it, or a pattern: 'FOLDER/*.pcap'\n")
    run(tmp_path / "trafic.pcap", code=2)
    assert run.err.endswith("No such file or directory; the nearest name is 'traffic.pcap'\n")
    run(tmp_path / "absent", code=2)
    assert run.err.endswith("No such file or directory\n")
