"""`amqpcodec spark` reports what is wrong before a session is begun."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import nullcontext
from typing import Any

import pytest

pytest.importorskip("pyspark")

from amqpcodec.cli import main, options, sparkconvert, sparksession
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


class Builder:
    """In the place of Spark's: what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def __getattr__(self, name: str) -> Any:
        def ask(*arguments: str) -> Builder:
            self.asked.append((name, *arguments))
            return self

        return ask

    def getOrCreate(self) -> Builder:  # noqa: N802
        return self


JAVA = ("java",)
NO_BAR, NO_PAGE = ("config", "spark.ui.showConsoleProgress", "false"), ("config", "spark.ui.enabled", "false")


@pytest.mark.parametrize(
    ("arguments", "submitted", "asked"),
    [
        ([], False, [NO_BAR, ("master", "local[*]"), JAVA, NO_PAGE]),
        (["--master", "local[2]"], True, [NO_BAR, ("master", "local[2]"), JAVA, NO_PAGE]),
        (["--master", "spark://there"], False, [NO_BAR, ("master", "spark://there")]),
        ([], True, [NO_BAR]),
        (["--remote", "sc://there"], False, [("remote", "sc://there")]),
        (["--conf", "a=b", "--conf", "c=d=e"], True, [NO_BAR, ("config", "a", "b"), ("config", "c", "d=e")]),
    ],
)
def test_a_session_is_as_the_arguments_say(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], submitted: bool, asked: list[tuple[str, ...]]
) -> None:
    builder = Builder()
    monkeypatch.setattr("pyspark.sql.SparkSession.builder", builder)
    monkeypatch.setattr("amqpcodec.spark.java.local_java", lambda: nullcontext(builder.asked.append(JAVA)))
    monkeypatch.setattr(sparksession.os, "environ", {sparksession._SUBMITTED: "1"} if submitted else {})
    parser = ArgumentParser()
    sparksession.add_session_arguments(parser)
    with sparksession.session(parser.parse_args(arguments)):
        pass
    assert builder.asked == [("appName", "amqpcodec"), *asked, ("stop",)]


def test_a_folder_that_cannot_be_written_is_named_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(spark: Any) -> str:
        raise ValueError("it is there")

    monkeypatch.setattr(sparksession, "session", nullcontext)
    assert sparksession.run_job(Namespace(out="folder"), write) == 2
    assert capsys.readouterr() == ("", "amqpcodec: 'folder' was not written: it is there\n")


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
