"""The command `amqpcodec` itself: its arguments and what it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.command import BUNNY

import amqpcodec
from amqpcodec.cli import main


@pytest.mark.parametrize(
    "option",
    [
        ["--port", "0"],
        ["--port", "x"],
        ["--port", "any,5"],
        ["--port", "5", "--port", "any"],
        ["--por", "5672"],
        ["--channel", "65536"],
        ["--channel", "-1"],
        ["--dialect", "amqp-1-0"],
        ["--body-bytes", "1.5"],
    ],
)
def test_bad_arguments_end_with_code_2(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["decode", str(BUNNY), *option])
    assert caught.value.code == 2
    shown = capsys.readouterr().err
    assert "amqpcodec decode: error: " in shown or "amqpcodec: error: unrecognized arguments: --por" in shown


def test_version_names_the_implementation(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"amqpcodec {amqpcodec.__version__} ({amqpcodec.IMPL})\n"


def test_the_codec_does_not_import_the_capture_reader() -> None:
    check = (
        "import sys, amqpcodec.rabbitmq; sys.exit(any('.capture' in m or '.cli' in m for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["decod"], "; the nearest name is 'decode'\n"),
        (["--versoin"], "unrecognized arguments: --versoin; the nearest name is '--version'\n"),
        ([], "the following arguments are required: COMMAND\n"),
    ],
)
def test_a_command_that_does_not_exist_is_named_with_the_nearest(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.endswith("amqpcodec --help shows what there is\n")


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("--dialct", "; the nearest name is '--dialect'"),
        ("--dirction", "; the nearest name is '--direction'"),
        ("--reply-code", ""),
        ("--reply-text", ""),
        ("--vhost", ""),
    ],
)
def test_an_option_is_advised_for_its_name_not_for_its_dashes(
    option: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["decode", "x", option])
    assert capsys.readouterr().err == (
        f"amqpcodec decode: error: unrecognized arguments: {option}{hint}\n"
        "amqpcodec decode --help shows what there is\n"
    )


def test_help_loads_little_so_that_it_is_there_at_once() -> None:
    check = "import sys; from amqpcodec.cli import main\ntry: main(['--help'])\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, check=True, timeout=60)
    loaded = set(done.stdout.decode().splitlines()[-1].split())
    assert "amqpcodec.cli" in loaded
    assert not loaded & {"pyarrow", "pyspark", "rich", "plotly", "zstandard", "difflib", "ctypes"}
