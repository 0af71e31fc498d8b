"""The Python and the commands of the documentation run; those of Spark are in tests/spark.

README, docs/codec.md, docs/client.md and docs/adopting.md have programs that stand alone: test_readme.py runs
them. test_docs_cookbook.py runs docs/cookbook.md. Elsewhere a block goes on from the one before it.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from support.documents import BROKER_URL, DOCS, ROOT, Example, examples, make_captures, run_page
from support.examples import serving

from amqpcodec import IMPL, rabbitmq
from amqpcodec.cli import _parser, main

ALONE = {"codec.md", "client.md", "adopting.md", "start/speed-up.md"}
SPARK = {"spark.md", "spark-tables.md", "start/spark.md"}
COOKBOOK = {"cookbook.md"}
PAGES = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
NEEDED = {
    "columns.md": ("pyarrow", "polars", "duckdb"),
    "stats.md": ("pyarrow",),
    "start/capture.md": ("pyarrow", "plotly"),
    "start/tables.md": ("pyarrow",),
    "testing.md": ("pika",),
}
COMMAND = re.compile(r"^    (?:\$ |.*\| )?amqpcodec .*[^\\]$", re.MULTILINE)


def pages(language: str) -> list[str]:
    """The pages that have blocks of a language, and are run here."""
    others = SPARK | COOKBOOK | (ALONE if language == "python" else set())
    return [name for name, path in PAGES.items() if name not in others and examples(path, language)]


def names() -> dict[str, Any]:
    """What blocks use and do not define."""
    publish = rabbitmq.Basic.Publish(exchange="orders", routing_key="eu")
    octets = rabbitmq.encode_message(1, publish, rabbitmq.BasicProperties(headers={"attempt": 1}), b"body")
    return {"octets": octets, "chain": chain, "at": 0}


def need(page: str) -> None:
    """Skip where a library is missing that the page is about."""
    for library in NEEDED.get(page, ()):
        pytest.importorskip(library)


def test_every_page_with_python_is_run_by_some_test() -> None:
    assert {"index.md", "errors.md", "limits.md", "capture.md", "columns.md", "stats.md"} <= set(
        pages("python")
    )
    assert {*ALONE, *SPARK, *COOKBOOK} <= set(PAGES)
    for path in PAGES.values():
        assert path.read_text(encoding="utf-8").count("```python") == len(examples(path))


@pytest.mark.parametrize("page", pages("python"))
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need(page)
    given = names()
    if page == "columns.md":
        given["polars"], given["duckdb"] = pytest.importorskip("polars"), pytest.importorskip("duckdb")
        given["pandas"] = pytest.importorskip("pandas", minversion="3")
    monkeypatch.chdir(tmp_path)
    make_captures(tmp_path, examples(PAGES[page]))
    if BROKER_URL not in PAGES[page].read_text(encoding="utf-8"):
        run_page(PAGES[page], given)
        return
    with serving(IMPL) as (port, _):
        run_page(PAGES[page], given, f"amqp://guest:guest@127.0.0.1:{port}/")


@pytest.mark.parametrize("page", pages("sh"))
def test_the_commands_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    need(page)
    blocks = examples(PAGES[page], "sh")
    monkeypatch.chdir(tmp_path)
    make_captures(tmp_path, blocks)
    for line in lines(blocks):
        program, *arguments = shlex.split(line, comments=True)
        if program == "pip":
            check_install(arguments)
        elif arguments == ["--version"]:
            with pytest.raises(SystemExit, match="0"):
                main(arguments)
        else:
            assert program == "amqpcodec"
            assert main(arguments) == 0, line
    said = capsys.readouterr().err.splitlines()
    assert all(line.endswith(", and all was read") for line in said), said


def lines(blocks: list[Example]) -> list[str]:
    """The commands in blocks, a line each."""
    return [line for block in blocks for line in block.code.splitlines()]


def check_install(arguments: list[str]) -> None:
    """An installation is of a checkout, with extras that the package has; the site of a release names it."""
    assert arguments[0] == "install"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    name, _, asked = arguments[1].rstrip("]").partition("[")
    assert name == "."
    assert set(filter(None, asked.split(","))) <= set(extras)


@pytest.mark.parametrize("page", [name for name in PAGES if name.startswith("start/")])
def test_a_page_for_beginners_begins_with_a_command(page: str) -> None:
    text = PAGES[page].read_text(encoding="utf-8")
    assert text.index("```sh") == text.index("```")
    assert len(text.splitlines()) < 90


def test_authors_of_clients_have_a_whole_program_on_the_first_page_that_they_are_led_to() -> None:
    assert (
        "start/client.md" in re.findall(r"\]\(([^)]+)\)", PAGES["index.md"].read_text(encoding="utf-8"))[:2]
    )
    first = examples(PAGES["start/client.md"])[0]
    assert first.line < 20
    assert "Client(" in first.code
    assert "asyncio.run(" in first.code


@pytest.mark.parametrize("path", [ROOT / "README.md", *PAGES.values()], ids=lambda path: path.stem)
def test_commands_in_the_text_have_options_that_exist(path: Path) -> None:
    for line in COMMAND.findall(path.read_text(encoding="utf-8")):
        command = line[line.rindex("amqpcodec ") :].partition(" | ")[0]
        _, *arguments = shlex.split(command, comments=True)
        _parser().parse_args(arguments)
