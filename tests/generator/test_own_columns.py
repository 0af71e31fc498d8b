"""A foreign dialect in columns: every method and property, in both builds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPT = "own_columns.py"
Run = Callable[..., dict[str, Any]]

pytest.importorskip("pyarrow", reason="pyarrow is not installed")


@pytest.fixture(scope="module")
def pure(package: Path, run: Run) -> dict[str, Any]:
    return run("py", package, SCRIPT)


def test_messages_come_back_as_they_were(pure: dict[str, Any]) -> None:
    back = [each["back"] for each in pure["contents"]]
    assert back.count(True) > 10
    assert False not in back


def test_methods_of_any_name_have_a_row(pure: dict[str, Any]) -> None:
    assert len(pure["methods"]) > 100
    assert len(pure["names"]) == len(set(pure["names"]))


@pytest.mark.slow("compiles a package")
def test_the_compiled_package_gives_the_same_rows(pure: dict[str, Any], compiled: Path, run: Run) -> None:
    assert run("c", compiled, SCRIPT) == pure
