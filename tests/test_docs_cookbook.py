"""The answers of docs/cookbook.md: each is short, runs, and prints what the page says."""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.command import TROUBLE
from support.documents import BROKER_URL, DOCS
from support.examples import serving

from amqpcodec import IMPL
from amqpcodec.cli import main

PAGE = DOCS / "cookbook.md"
TEXT = PAGE.read_text(encoding="utf-8")
QUESTION = re.compile(r"^### (.+)\n", re.MULTILINE)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_LINES = 12


class Answer(NamedTuple):
    """A question, the language and the code of its answer, and what that prints; None if that is not said."""

    question: str
    language: str
    code: str
    printed: str | None


def part(title: str) -> str:
    """The text of a section."""
    return next(each for each in re.split(r"^## ", TEXT, flags=re.MULTILINE) if each.startswith(title))


def preamble(title: str) -> str:
    """The code that all answers of a section go on from."""
    [(_, code)] = FENCE.findall(part(title).partition("\n### ")[0])
    return str(code)


def answers(title: str) -> list[Answer]:
    """The answers of a section."""
    _, *rest = QUESTION.split(part(title))
    found = []
    for question, text in zip(rest[::2], rest[1::2], strict=True):
        (language, code), *printed = FENCE.findall(text)
        assert [each for each, _ in printed] in ([], ["text"]), question
        found.append(Answer(question, language, code, printed[0][1] if printed else None))
    return found


TROUBLES, CLIENTS = answers("A broker in trouble"), answers("Writing a client")


def shortened(text: str) -> re.Pattern[str]:
    """A pattern for what is printed: dots stand for any text of a line, and alone for any lines."""
    lines = (
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n"
        for line in text.splitlines()
    )
    return re.compile("".join(lines))


def check(answer: Answer, printed: str) -> None:
    """Fail where what was printed is not what the page says."""
    if answer.printed is not None:
        assert shortened(answer.printed).fullmatch(printed), f"{answer.question}\n{printed}"


def test_there_are_enough_questions_and_their_answers_are_short() -> None:
    assert len(TROUBLES) >= 20
    assert len(CLIENTS) >= 10
    for each in (*TROUBLES, *CLIENTS):
        assert each.question.endswith("?")
        lines = [line for line in each.code.splitlines() if line and " import " not in f" {line}"]
        assert len(lines) <= MOST_LINES, each.question
    assert all(each.printed for each in TROUBLES)
    assert sum(each.printed is not None for each in CLIENTS) >= 10


def test_dots_stand_for_text_and_for_lines() -> None:
    pattern = shortened("a\n...\nb ... d\n")
    assert pattern.fullmatch("a\nb c d\n")
    assert pattern.fullmatch("a\nx\ny\nb  d\n")
    assert not pattern.fullmatch("a\nb c d\nx\n")
    assert not pattern.fullmatch("a\nb c\nd d\n")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The names that answers about the capture go on from; the folder has it."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("duckdb")
    folder, before = tmp_path_factory.mktemp("cookbook"), Path.cwd()
    shutil.copy(TROUBLE, folder)
    names: dict[str, Any] = {}
    os.chdir(folder)
    try:
        exec(compile(preamble("A broker in trouble"), str(PAGE), "exec", dont_inherit=True), names)
        yield names
    finally:
        os.chdir(before)


@pytest.mark.parametrize("answer", TROUBLES, ids=lambda answer: answer.question)
def test_an_answer_about_the_capture_is_what_the_page_says(
    answer: Answer, tables: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    if answer.language == "python":
        exec(compile(answer.code, str(PAGE), "exec", dont_inherit=True), tables)
    else:
        program, *arguments = shlex.split(answer.code)
        assert program == "amqpcodec"
        assert main(arguments) in (0, 1)  # 1, since the capture has a gap
    out, err = capsys.readouterr()
    assert err == ""
    check(answer, out)


@pytest.mark.skipif(os.name == "nt", reason="one of the answers is about signals of POSIX")
def test_answers_for_authors_of_clients_run_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("trustme")
    monkeypatch.chdir(tmp_path)

    async def run(url: str) -> None:
        names: dict[str, Any] = {}
        await execute(preamble("Writing a client").replace(BROKER_URL, url), names)
        for answer in CLIENTS:
            with redirect_stdout(io.StringIO()) as out:
                await asyncio.wait_for(execute(answer.code, names), 20)
            check(answer, out.getvalue())

    with serving(IMPL) as (port, _):
        asyncio.run(run(f"amqp://guest:guest@127.0.0.1:{port}/"))


async def execute(code: str, names: dict[str, Any]) -> None:
    """Run lines as `python -m asyncio` does: they may await."""
    compiled = compile(code, str(PAGE), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    found = eval(compiled, names)
    if inspect.isawaitable(found):
        await found


def test_each_question_in_sql_is_asked_of_spark_too() -> None:
    """The tests of Spark run the queries, and compare what they give with this page."""
    asked = [each.question for each in answers("A broker in trouble") if each.code.startswith("ask(")]
    assert len(asked) >= 10
    page = (DOCS / "spark.md").read_text(encoding="utf-8")
    assert [question for question in asked if f"**{question}**" not in page] == []
