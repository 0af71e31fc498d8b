"""What is public is listed in the docs, and used by programs that type checkers check."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

import pytest
from check_samples import dialect_sample, sample_of_names

import amqpcodec
from amqpcodec import DIALECTS

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted(Path(__file__).parent.glob("sample_*.py"))
COMMANDS = {"__main__", "cli", "run", "bench"}  # started, not imported
NEEDS = {"arrow": "pyarrow", "stats": "pyarrow", "spark": "pyspark"}


def documented() -> list[str]:
    page = (ROOT / "docs" / "versioning.md").read_text(encoding="utf-8")
    table = page.partition("<!-- modules:")[2].partition("## ")[0]
    rows = re.findall(r"^\| (`amqpcodec.*?) \|", table, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]


def used(texts: Iterator[str]) -> set[str]:
    """Names that programs import, or look up in something."""
    found = set()
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Attribute(attr=name) | ast.alias(name=name):
                    found.add(name)
    return found


def test_the_docs_list_every_public_module() -> None:
    modules = {module.name for module in iter_modules(amqpcodec.__path__) if not module.name.startswith("_")}
    listed = {name.partition(".")[2].partition(".")[0] for name in documented()} - {""}
    assert listed == (modules | {"compat"}) - COMMANDS


@pytest.mark.parametrize("name", documented())
def test_a_program_uses_every_name_of_a_public_module(name: str) -> None:
    short = name.partition(".")[2]
    library = NEEDS.get(short)
    if library is not None and find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    module = import_module(name)
    dialect = short in DIALECTS.values()
    texts = [dialect_sample(module)] if dialect else [path.read_text(encoding="utf-8") for path in SAMPLES]
    if short == "reply_errors":
        texts = [sample_of_names(module)]
    assert not set(module.__all__) - used(iter(texts))


def test_star_imports_are_what_all_says() -> None:
    for name in ("errors", "limits", "profiles", "spec", "types"):
        module = import_module(f"amqpcodec.{name}")
        assert sorted(module.__all__) == sorted(set(module.__all__))
        assert all(hasattr(module, each) for each in module.__all__)
