"""Nothing takes an encoding, a path or a call of one system for that of all; what needs one skips."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "examples", "tools", "fuzz", "benchmarks")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
# What Windows has not, some of it not macOS either; in texts of programs as well.
OF_ONE_SYSTEM = re.compile(
    r"""["' ]/(?:tmp|proc|dev|bin|etc|usr)/|\["sh"|\bpreexec_fn\b|\bstart_new_session\b"""
    r"""|\bos\.(?:fork|killpg|mkfifo|getuid|sched_getaffinity|wait4)\b|\bos\.kill\("""
    r"""|\bimport (?:fcntl|resource|pty|termios|pwd|grp)\b"""
    r"""|\bsignal\.(?:alarm|setitimer|SIGKILL|SIGSTOP)\b"""
)
# What tests are supported by that skip themselves, and what has a way for each system.
FOR_ALL = {"support/subprocesses.py"}
FOR_ONE = {
    "interop/building.py",
    "interop/suites/running.py",
    "support/broker.py",
    "support/clients/sampling.py",
    "support/compat/engine.py",
}


def calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call by the name of the function, with or without an object before it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield name, node


def is_text_without_encoding(name: str, call: ast.Call) -> bool:
    """Return whether a call reads or writes text in the encoding that the system happens to have."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if "encoding" in given:
        return False
    if any(isinstance(given.get(each), ast.Constant) for each in ("text", "universal_newlines")):
        return True
    if name in ("read_text", "write_text"):
        return len(call.args) == (name == "write_text")
    if name != "open":
        return False
    is_method = isinstance(call.func, ast.Attribute)
    mode = given.get("mode") or next(iter(call.args[not is_method :]), None)
    if not isinstance(mode, ast.Constant):
        return mode is None and not is_method
    return isinstance(mode.value, str) and bool(re.fullmatch(r"[rwax+t]+", mode.value))


@pytest.mark.slow("reads every file")
def test_text_is_read_and_written_in_an_encoding_that_is_named() -> None:
    found = []
    for path in SOURCES:
        for name, call in calls(ast.parse(path.read_text(encoding="utf-8"))):
            if is_text_without_encoding(name, call):
                found.append(f"{path.relative_to(ROOT)}:{call.lineno}")
    assert found == []


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("path.read_text()", True),
        ("path.read_text('utf-8')", False),
        ("path.write_text(text)", True),
        ("path.write_text(text, encoding='utf-8')", False),
        ("open(path)", True),
        ("open(path, 'rb')", False),
        ("path.open('a')", True),
        ("connection.open()", False),
        ("subprocess.run(command, text=True)", True),
        ("subprocess.run(command, capture_output=True)", False),
    ],
)
def test_such_a_call_is_noticed(code: str, is_found: bool) -> None:
    [(name, call)] = calls(ast.parse(code))
    assert is_text_without_encoding(name, call) is is_found


def test_tests_with_something_of_one_system_skip_on_others() -> None:
    found = set()
    for path in (ROOT / "tests").rglob("*.py"):
        name = path.relative_to(ROOT / "tests").as_posix()
        text = path.read_text(encoding="utf-8")
        if OF_ONE_SYSTEM.search(text) and not re.search("skip|@posix", text):
            found.add(name)
    assert found == FOR_ALL | FOR_ONE
