"""Refusals of the emitters, layouts, and the names and settings of packages."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from codecgen import naming
from codecgen.code import string
from codecgen.elements import SpecError
from codecgen.emit import render_package
from codecgen.emit_facts import render_facts
from codecgen.emit_layouts_c import render_layouts_c
from codecgen.emit_layouts_py import render_layouts_py
from codecgen.emit_module import render_module
from codecgen.emit_reply_codes import render_reply_codes
from codecgen.layouts import layouts
from codecgen.model import Constant, Field
from demo_dialect import class_of, dialect, field, method

from amqpcodec import __version__

ROOT = Path(__file__).resolve().parent.parent.parent


def test_labels_with_quotes_and_backslashes_stay_what_they_are() -> None:
    for text in ('say "so"', "it's", "a\\b", "both \" and '", "zażółć"):
        assert eval(string(text)) == text
        assert string(text).startswith('"')


def test_one_reply_code_with_two_meanings_is_refused() -> None:
    first = dialect(constants=(Constant("one", 399, "soft", "one", "ONE"),))
    for other in (Constant("two", 399, "soft", "two", "TWO"), Constant("one", 399, "hard", "one", "ONE")):
        with pytest.raises(SpecError, match="reply code 399 is one in another dialect"):
            render_reply_codes([first, dialect(constants=(other,))])


def test_every_class_and_table_that_a_module_always_has_is_kept_from_names_of_a_dialect() -> None:
    text = render_module(dialect(), "demo", "demo.facts", "layouts")
    names = re.search(r"^__all__ = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    assert names is not None
    public = re.findall(r'"(\w+)"', names[1])
    assert {name for name in public if name[0].isupper()} == naming.MODULE_NAMES | set(naming.SHARED_NAMES)
    facts = re.search(r"^from amqpcodec\.spec import (.*)", render_facts(dialect()), re.MULTILINE)
    assert facts is not None
    # An Assert cannot be meant: what has facts is named by two words at least.
    assert set(facts[1].split(", ")) - {"Assert"} == naming.FACTS_NAMES


def test_a_package_needs_the_version_that_generated_it_and_what_amqpcodec_is_built_with() -> None:
    settings = tomllib.loads(render_package(dialect(), "own")["pyproject.toml"])
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = f"amqpcodec=={__version__}"
    assert settings["build-system"] == ours["build-system"]
    assert settings["project"] == {
        "name": "own",
        "version": "0.9.1",
        "requires-python": ours["project"]["requires-python"],
        "dependencies": [needed],
    }


@pytest.mark.parametrize(("package", "project"), [("_own", "own"), ("own_", "own"), ("own_2", "own_2")])
def test_a_project_is_called_as_pip_allows(package: str, project: str) -> None:
    settings = tomllib.loads(render_package(dialect(), package)["pyproject.toml"])
    assert settings["project"]["name"] == project
    assert settings["tool"]["setuptools"]["packages"] == [package]


@pytest.mark.parametrize("package", ["_", "żółw"])
def test_a_package_name_that_is_no_name_of_a_project_is_refused(package: str) -> None:
    with pytest.raises(SpecError, match="no name that pip can install"):
        render_package(dialect(), package)


def test_a_package_cannot_be_called_as_the_one_it_builds_on() -> None:
    with pytest.raises(SpecError, match="--package amqpcodec: the name of the package"):
        render_package(dialect(), "amqpcodec")


@pytest.mark.parametrize("package", ["no-hyphens", "a.b", "", "9lives"])
def test_a_package_name_python_cannot_import_is_refused(package: str) -> None:
    with pytest.raises(SpecError, match="not a name that Python can import"):
        render_package(dialect(), package)


def test_a_short_name_that_is_another_methods_long_name_does_not_hide_it() -> None:
    names = {"name": "demo-call", "python_name": "DemoDemoCall", "short_name": "DemoCall"}
    longer = replace(method(), method_id=8, **names)
    text = render_module(dialect(class_of((), longer, method())), "demo", "demo.facts", "layouts")
    assert "    Call = DemoCall\n    DemoCall = DemoDemoCall\n" in text


def test_a_table_beside_an_argument_called_str_does_not_get_its_type_by_that_name() -> None:
    fields = field("str", "shortstr"), field("n", "table")
    text = render_module(dialect(class_of((), method(*fields))), "demo", "demo.facts", "layouts")
    assert "        self.n = {} if n is None else n\n" in text


def test_methods_of_one_layout_share_its_routines() -> None:
    of = [dialect(class_of((), method(field(name, "short"), field("no-wait", "bit")))) for name in ("a", "b")]
    found = layouts(of)
    assert [(each.name, each.holders) for each in found if each.types] == [("hb", ("demo.call",))]
    for text in (render_layouts_c(found), render_layouts_py(found)):
        assert (text.count(" read_hb("), text.count("write_hb(")) == (1, 1)


@pytest.mark.parametrize(
    ("properties", "arguments"),
    [
        ((field("p", "bit"),), ()),
        (tuple(field(f"p{place}", "octet") for place in range(16)), ()),
        ((), tuple(field(f"a{place}", "octet") for place in range(33))),
        ((), (field("a", "content"),)),
    ],
    ids=["a bit among properties", "flags of two words", "too many arguments", "a rare type"],
)
def test_what_is_rare_is_left_to_the_slow_path(
    properties: tuple[Field, ...], arguments: tuple[Field, ...]
) -> None:
    names = [layout.name for layout in layouts([dialect(class_of(properties, method(*arguments)))])]
    assert names == (["none"] if properties else [])
