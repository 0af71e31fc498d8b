"""`amqpcodec spark` reports what is wrong before a session is begun."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from amqpcodec.cli import main, options, sparkconvert
from amqpcodec.cli.sparksession import reason
from amqpcodec.options import SparkConversionOptions


def convert(*arguments: str) -> int:
    return main(["spark", "convert", "in.pcap", "out", *arguments])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--table", "frame"], "invalid choice: 'frame'"),
        (["--max-group-bytes", "many"], "argument --max-group-bytes: 'many' is no size"),
        (["--flow-timeout", "soon"], "argument --flow-timeout: 'soon' is no time"),
        (["--mode", "failfast"], "invalid choice: 'failfast'"),
        (["--conf", "=1"], "'=1' is not NAME=VALUE"),
        (["--master", "local", "--remote", "sc://x"], "not allowed with argument --master"),
    ],
)
def test_wrong_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    with pytest.raises(SystemExit) as left:
        convert(*arguments)
    assert left.value.code == 2
    assert complaint in capsys.readouterr().err


def test_without_a_java_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_java(folder: object) -> str:
        from amqpcodec.spark.java import NoJavaError

        raise NoJavaError("Spark needs Java")

    monkeypatch.setattr("amqpcodec.spark.java.java_home", no_java)
    assert convert("--master", "local[1]") == 2
    assert capsys.readouterr().err == "amqpcodec: Spark needs Java\n"


def test_arguments_become_those_of_the_library() -> None:
    import argparse

    parser = argparse.ArgumentParser()
    sparkconvert.add_parser(parser.add_subparsers())
    given = parser.parse_args(
        ["convert", "a", "b", "out", "--columns", "ts,body", "--mode", "drop", "--port", "any",
         "--input", "stream", "--include-credentials", "--max-group-bytes", "2g", "--no-stitch",
         "--conf", "spark.x=1=2"],
    )  # fmt: skip
    assert given.files == ["a", "b"]
    assert given.conf == [("spark.x", "1=2")]
    assert options.given(given, SparkConversionOptions) == {
        "columns": ("ts", "body"),
        "mode": "drop",
        "port": None,
        "input": "stream",
        "include_credentials": True,
        "max_group_bytes": 2 << 30,
        "stitch": False,
    }


def test_of_a_failed_job_the_error_of_the_worker_is_reported() -> None:
    trace = 'Traceback (most recent call last):\n  File "x", line 1, in f\n    g()\n'
    text = f"Job aborted: {trace}OSError: no disk\nin 'a.pcap'\n SQLSTATE: 38000\n\tat java.lang"
    assert reason(RuntimeError(text)) == "OSError: no disk in 'a.pcap'"
    text = f"Job aborted: {trace}pyarrow.lib.ArrowInvalid: no footer\n SQLSTATE: 38000"
    assert reason(RuntimeError(text)) == "pyarrow.lib.ArrowInvalid: no footer"
    assert reason(RuntimeError("boom\nmore")) == "boom"
