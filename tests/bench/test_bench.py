"""``python -m amqpcodec.bench``: what it measures, and what it makes of two runs."""

from __future__ import annotations

import ast
import copy
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.implementation import Implementation
from support.make_capture import Talk, Truth, pcap

import amqpcodec.rabbitmq as amqp
from amqpcodec import capture
from amqpcodec.bench.__main__ import main
from amqpcodec.bench.comparing import OURS, figures
from amqpcodec.bench.recording import Stream, record
from amqpcodec.bench.timing import _time, measure
from amqpcodec.bench.works import Recording, Work, WrongResultError, _cut, our_works

EXAMPLES = Path(__file__).parents[2] / "examples"
CAPTURE = str(EXAMPLES / "real-bunny.pcap")
QUICK = ("--seconds", "0", "--max-bytes", "8000")
Change = Callable[[dict[str, Any]], object]


def bench(*arguments: str) -> int:
    """The command with a clock on which everything takes one second."""
    return main(arguments, timer=itertools.count().__next__)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run by that clock; the time of a frame is a ratio of small numbers."""
    printed = tmp_path_factory.mktemp("bench") / "run.json"
    with printed.open("w", encoding="utf-8") as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", file)
        assert bench(CAPTURE, "--json", *QUICK) == 0
    return json.loads(printed.read_text(encoding="utf-8"))


@pytest.fixture
def compared(run: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Compares a run with a changed copy of it: the exit code, and what is printed."""

    def compared(change: Change, *arguments: str) -> tuple[int, str]:
        after = copy.deepcopy(run)
        change(after)
        for name, kept in (("old.json", run), ("new.json", after)):
            (tmp_path / name).write_text(json.dumps(kept), encoding="utf-8")
        code = bench(str(tmp_path / "new.json"), "--compare", str(tmp_path / "old.json"), *arguments)
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return compared


def slower(factor: float, *, item: str = "", peer: str = "") -> Change:
    """A run with longer times of an item, a peer, or of all."""

    def change(run: dict[str, Any]) -> None:
        for entry in run["benchmarks"]:
            if item in ("", entry["extra_info"]["item"]) and entry["extra_info"]["peer"].startswith(peer):
                for name in ("min", "median", "mean"):
                    entry["stats"][name] *= factor

    return change


def without(peer: str) -> Change:
    def change(run: dict[str, Any]) -> None:
        run["benchmarks"] = [entry for entry in run["benchmarks"] if entry["extra_info"]["peer"] != peer]
        del run["versions"][peer]

    return change


def test_every_build_is_measured_by_its_name(impl: Implementation) -> None:
    command = [sys.executable, "-m", "amqpcodec.bench", CAPTURE, "--json", *QUICK]
    done = subprocess.run(
        command,
        env={**os.environ, "AMQPCODEC_IMPL": impl.name},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    ours = {"c": "amqpcodec", "py": "amqpcodec pure"}[impl.name]
    found = [entry["extra_info"] for entry in json.loads(done.stdout)["benchmarks"]]
    items = [info["item"] for info in found if info["peer"] == ours]
    assert items == ["decode frames", "decode messages and other frames", "encode frames", "encode messages"]
    assert "struct" in {info["peer"] for info in found}
    assert all(f"| {item}" in done.stderr for item in items)


def test_the_rows_are_named_that_are_slower_than_the_margin_allows(compared: Any) -> None:
    code, text = compared(slower(1.15, item="encode frames"))
    assert code == 1
    assert "Slower, or gone: encode frames" in text
    assert "+15.0% | **SLOWER**" in text
    assert text.count("SLOWER") == 1


def test_what_is_within_the_margin_passes(compared: Any) -> None:
    assert compared(slower(1.09, item="encode frames"))[0] == 0
    assert compared(slower(1.15, item="encode frames"), "--margin", "20%")[0] == 0
    assert compared(slower(1.15, item="encode frames"), "--margin", "14")[0] == 1


def test_a_slow_machine_is_no_slow_codec(compared: Any) -> None:
    code, text = compared(slower(3.0))
    assert code == 0
    assert "+0.0%" in text
    assert "Nothing is slower" in text


def test_a_codec_that_is_slow_beside_the_yardsticks_is_found_on_a_fast_machine(compared: Any) -> None:
    def change(run: dict[str, Any]) -> None:
        slower(0.5)(run)
        slower(1.2, peer="amqpcodec")(run)

    code, text = compared(change)
    assert code == 1
    assert text.count("+20.0%") == 4


def test_a_yardstick_that_only_one_run_has_is_left_out(compared: Any) -> None:
    pytest.importorskip("pika")
    code, text = compared(without("pika"))
    assert code == 0
    assert "pika" not in text
    assert "ratio to struct" in text


def test_a_yardstick_of_another_version_is_left_out(compared: Any) -> None:
    pytest.importorskip("pika")

    def change(run: dict[str, Any]) -> None:
        slower(0.5, peer="pika")(run)
        run["versions"]["pika"] = "999"

    code, text = compared(change)
    assert code == 0
    assert "pika" not in text


def test_another_processor_is_named(compared: Any) -> None:
    code, text = compared(lambda run: run["machine_info"].update(cpu={"brand_raw": "Z80"}))
    assert code == 0
    assert " and of Z80. Ratios differ between processors." in text


def test_a_work_that_is_gone_is_a_failure(compared: Any) -> None:
    def change(run: dict[str, Any]) -> None:
        run["benchmarks"] = [
            entry for entry in run["benchmarks"] if entry["extra_info"]["item"] != "encode messages"
        ]

    code, text = compared(change)
    assert code == 1
    assert "Slower, or gone: encode messages" in text


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda run: run["machine_info"].update(python_version="3.0.0"), ", and is 3.0.0"),
        (lambda run: run.update(octets="other"), "they are of different octets"),
        (lambda run: run.update(versions={}), "no yardstick of the same version"),
        (lambda run: run.update(benchmarks=[{}]), "not a run of amqpcodec.bench (KeyError: 'extra_info')"),
    ],
)
def test_runs_that_say_nothing_about_each_other_are_refused(
    compared: Any, change: Change, reason: str
) -> None:
    code, text = compared(change)
    assert code == 2
    assert reason in text


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        (b"garbage that is no capture", "neither pcap nor pcapng"),
        (b"{garbage", "Expecting property name"),
        (b"[]", "neither pcap nor pcapng"),
        (b"", "empty"),
    ],
)
def test_a_file_of_something_else_is_refused_with_a_reason(
    octets: bytes, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    path.write_bytes(octets)
    assert bench(str(path)) == 2
    assert reason in capsys.readouterr().err


def test_a_stream_of_garbage_has_nothing_to_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(range(256)) * 4)
    assert bench(str(path), "--input", "stream") == 2
    assert "no AMQP found" in capsys.readouterr().err


def test_a_raw_stream_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "stream"
    path.write_bytes(amqp.encode_method(1, amqp.BasicAck(7)) * 50)
    assert bench(str(path), "--input", "stream", *QUICK) == 0
    text = capsys.readouterr().out
    assert "| decode frames " in text
    assert "messages |" not in text


def test_libraries_that_cannot_read_a_dialect_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(str(EXAMPLES / "real-txamqp-0-8.pcap"), *QUICK) == 0
    text = capsys.readouterr().out
    assert "pamqp is no yardstick: ValueError: it reads 0-9-1 alone" in text
    assert " struct " in text


def test_no_more_is_read_than_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    frames = iter([item for item in capture.read_frames(CAPTURE) if isinstance(item, capture.CapturedFrame)])
    recording = record(frames, 1000)
    assert not recording.is_whole
    assert 900 < sum(len(stream.octets) for stream in recording.streams) <= 1000
    assert len(list(frames)) > 100
    bench(CAPTURE, *QUICK)
    assert "only the first 8000 bytes of frames are timed" in capsys.readouterr().err


def test_the_loop_to_compare_with_finds_each_method() -> None:
    messages = b"".join(amqp.encode_message(n, amqp.Basic.Publish("", "q"), None, b"body") for n in (3, 2))
    assert _cut(messages + amqp.encode_method(1, amqp.Basic.Ack(7))) == {(60, 40): [3, 2], (60, 80): [1]}


def test_contents_that_miss_their_beginning_are_left_out() -> None:
    frames = [item for item in capture.read_frames(CAPTURE) if isinstance(item, capture.CapturedFrame)]
    behind = next(at for at, item in enumerate(frames) if item.frame.type == 2)
    whole, cut = record(frames, 1 << 20), record(frames[behind:], 1 << 20)
    assert whole.left_out == 0
    assert cut.left_out > 0
    assert next(iter(our_works(cut))).operations == len(frames) - behind - cut.left_out


def test_a_content_that_is_refused_is_left_out_with_its_body(tmp_path: Path) -> None:
    octets = (
        amqp.encode_method(1, amqp.BasicPublish("e", "k"))
        + amqp.encode_header(1, amqp.BasicProperties(), 1 << 60)  # damaged: more than a body may have
        + amqp.encode_body(1, b"abc")
        + amqp.encode_method(1, amqp.BasicAck(7))
    )
    path = tmp_path / "stream"
    path.write_bytes(octets)
    recording = record(capture.read_raw_frames(path), 1 << 20)
    assert recording.left_out == 2
    assert next(our_works(recording)).operations == 2


def test_the_times_of_rounds_become_the_figures_of_pytest_benchmark() -> None:
    now = itertools.accumulate([0.0, 20.0, 0, 0, 12, 0, 6, 0, 16, 0, 10, 0, 11])  # seconds from call to call
    work = Work("decode", "ours", "1.0", 1, lambda: None)
    [entry] = measure([work], 0, timer=now.__next__)["benchmarks"]
    assert entry["stats"] == {
        "min": 6.0,
        "max": 16.0,
        "mean": 11.0,
        "stddev": pytest.approx(13**0.5),
        "rounds": 5,
        "iterations": 1,
        "median": 11.0,
        "q1": 10.0,
        "q3": 12.0,
        "iqr": 2.0,
        "iqr_outliers": 2,
        "stddev_outliers": 2,
        "outliers": "2;2",
        "ld15iqr": 10.0,
        "hd15iqr": 12.0,
        "ops": 1 / 11,
        "total": 55.0,
    }


def test_what_is_not_read_back_is_not_timed() -> None:
    octets = amqp.encode_method(1, amqp.BasicAck(7))
    broken = SimpleNamespace(
        FrameDecoder=amqp.FrameDecoder,
        MessageDecoder=amqp.MessageDecoder,
        encode_frame=lambda frame, frame_max: amqp.encode_method(1, amqp.BasicAck(8)),
    )
    stream = Stream(broken, (octets,), octets)  # type: ignore[arg-type]
    with pytest.raises(WrongResultError, match=r"encode frames: basic\.ack is read back as something else$"):
        list(our_works(Recording((stream,), 0)))


def test_login_data_are_in_no_complaint() -> None:
    octets = amqp.encode_method(0, amqp.ConnectionStartOk({}, "PLAIN", b"\0guest\0hunter2", "en"))
    broken = SimpleNamespace(
        FrameDecoder=amqp.FrameDecoder,
        MessageDecoder=amqp.MessageDecoder,
        encode_frame=lambda frame, frame_max: octets + octets,
    )
    stream = Stream(broken, (octets,), octets)  # type: ignore[arg-type]
    with pytest.raises(WrongResultError, match=r"connection\.start-ok") as caught:
        list(our_works(Recording((stream,), 0)))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--seconds", "nan"),
        ("--seconds", "-1"),
        ("--max-bytes", "0"),
        ("--max-bytes", "-5"),
        ("--margin", "nan"),
        ("--margin", "inf"),
    ],
)
def test_numbers_that_cannot_be_are_refused(
    arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        bench(CAPTURE, *arguments)
    err = capsys.readouterr().err
    assert f"argument {arguments[0]}: a " in err
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize("arguments", [("absent.pcap",), (CAPTURE, "--compare", "absent.pcap")])
def test_a_file_that_cannot_be_read_is_named_before_anything_is_timed(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    clock = itertools.count()
    assert main(arguments, timer=clock.__next__) == 2
    assert next(clock) == 0
    assert "'absent.pcap': No such file or directory" in capsys.readouterr().err


def test_a_capture_is_no_earlier_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(CAPTURE, *QUICK, "--compare", CAPTURE) == 2
    assert f"{CAPTURE!r}: not a run of amqpcodec.bench, which is JSON" in capsys.readouterr().err


def test_a_run_is_read_from_a_pipe(run: dict[str, Any]) -> None:
    command = [sys.executable, "-m", "amqpcodec.bench", "-"]
    done = subprocess.run(command, input=json.dumps(run), capture_output=True, encoding="utf-8", check=True)
    assert "| decode frames " in done.stdout


def test_a_frame_larger_than_what_is_timed_is_named_as_that(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(CAPTURE, "--max-bytes", "3") == 2
    assert "the first frame has more than 3 bytes (--max-bytes)" in capsys.readouterr().err


def test_traffic_in_tls_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = Truth()
    Talk(truth, 0, (1, 1)).send(0, b"\x16\x03\x01\x00\x05hello")
    path = tmp_path / "tls.pcap"
    path.write_bytes(pcap(truth.packets))
    assert bench(str(path)) == 2
    assert "TLS" in capsys.readouterr().err


def test_a_time_is_that_of_one_call_of_several() -> None:
    calls: list[None] = []
    work: Any = SimpleNamespace(call=lambda: calls.append(None))
    assert _time(work, 3, iter([10.0, 16.0]).__next__) == 2.0
    assert len(calls) == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no such device")
def test_an_output_that_is_full_is_told(run: dict[str, Any]) -> None:
    command = [sys.executable, "-m", "amqpcodec.bench", "-"]
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            command, input=json.dumps(run), stdout=full, stderr=subprocess.PIPE, encoding="utf-8"
        )
    assert done.returncode == 2
    assert done.stderr == "amqpcodec.bench: standard output: No space left on device\n"


def test_an_interruption_ends_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> float:
        raise KeyboardInterrupt

    assert main([CAPTURE, *QUICK], timer=interrupted) == 130
    assert capsys.readouterr().err.endswith("amqpcodec.bench: interrupted; nothing is written\n")


@pytest.mark.slow("runs another tool")
def test_the_tool_of_pytest_benchmark_reads_a_run(run: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("pytest_benchmark")
    path = tmp_path / "run.json"
    path.write_text(json.dumps(run), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest_benchmark", "compare", str(path), "--group-by", "group"],
        cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=60, check=True,
    )  # fmt: skip
    assert "benchmark 'decode frames'" in done.stdout
    assert "encode messages[" in done.stdout
    assert "Failed to load" not in done.stderr


def test_the_baseline_of_the_project_has_every_work_in_both_builds() -> None:
    text = (EXAMPLES.parent / "benchmarks" / "ci.py").read_text(encoding="utf-8")
    items = next(
        ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ITEMS"
    )
    stored = figures(
        json.loads((EXAMPLES.parent / "benchmarks" / "ci-baseline.json").read_text(encoding="utf-8"))
    )
    assert {item: set(OURS) - set(stored[item]) for item in items} == {item: set() for item in items}
    assert set(stored) == set(items)
