"""Specifications in the style of the published 0-8 files: they load, and what they say of values is kept."""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path

import pytest
from codecgen.emit import render_package
from codecgen.explain import explain
from codecgen.load import load_dialect
from codecgen.model import Assert, Dialect

OLD_STYLE = Path(__file__).resolve().parent.parent / "data" / "specs" / "old-style.xml"
BARE = """<amqp major="0" minor="9">
  <constant name="gone" value="399" class="soft-error"/>
  <class name="bare" index="1">
    <field name="mark" type="octet"/>
    <method name="call" index="1"><field name="on" type="bit"/></method>
  </class>
</amqp>
"""


@pytest.fixture(scope="module")
def old_style() -> Dialect:
    return load_dialect(OLD_STYLE)


def test_what_stands_as_text_is_the_label_without_the_prose_between(old_style: Dialect) -> None:
    letter, office = old_style.classes
    write = letter.methods[0]
    assert (old_style.label, letter.label, write.label) == (
        "A Protocol of Letters",
        "work with letters.",
        "write a letter",
    )
    labels = {field.name: field.label for field in (*letter.properties, *write.fields)}
    assert labels == {
        "paper-size": 'What the letter is "written" on',
        "sealed": "",
        "to-street": "where somebody lives",
        "seals": "known seals",
        "if-light": "only if it is light",
        "stamp": "what to do with the stamp",
    }
    assert old_style.constants[1].label == "Nobody knows where the letter is. The sender may try again."
    assert office.label == ""


def test_asserts_stay_with_their_values_and_what_those_mean(old_style: Dialect) -> None:
    write, write_ok = old_style.classes[0].methods[:2]
    asserts = {field.name: field.asserts for field in (*write.fields, *write_ok.fields)}
    meant = ("leave the stamp on the letter", "give the stamp to the sender", "")
    assert asserts == {
        "to-street": (Assert("length", "127"),),
        "seals": (Assert("notnull"),),
        "if-light": (),
        "stamp": (Assert("enum", values=("keep", "take-off", "ask"), labels=meant),),
        "paid-for": (Assert("le", method="write", field="stamp"),),
    }


def test_references_stay_and_are_explained_with_the_values(old_style: Dialect) -> None:
    assert [field.see for field in old_style.methods[0].fields] == [(), ("seals-in-use",), (), ()]
    text = explain([old_style], "letter.write")
    assert "known seals [notnull] (see seals-in-use)" in text
    assert "[enum keep (leave the stamp on the letter)|take-off (give the stamp to the sender)|ask]" in text


def test_sides_and_responses_are_as_the_file_says(old_style: Dialect) -> None:
    methods = [(method.name, method.server, method.client, method.responses) for method in old_style.methods]
    assert methods == [
        ("write", "MUST", None, ("write-ok",)),
        ("write-ok", None, "MUST", ()),
        ("search", None, None, ("found",)),
        ("found", None, None, ()),
    ]


def test_a_corrected_response_is_that_of_the_overlay(tmp_path: Path) -> None:
    path = tmp_path / "old-style.xml"
    shutil.copy(OLD_STYLE, path)
    (tmp_path / "overlays").mkdir()
    (tmp_path / "overlays" / "old-style.toml").write_text(
        '[[correction]]\nelement = "letter.search"\nattribute = "responses"\n'
        'was = "found"\nnow = ""\nreason = "It is of another class."\n',
        encoding="utf-8",
    )
    assert load_dialect(path).methods[2].responses == ()


def docstrings(files: dict[str, str]) -> list[str]:
    """Every docstring of the Python texts."""
    found = []
    for name, text in files.items():
        if name.endswith(".py"):
            with_docstrings = (
                node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.ClassDef, ast.Module))
            )
            found += [ast.get_docstring(node) or "" for node in with_docstrings]
    return [text for text in found if text]


@pytest.mark.parametrize("bare", [False, True])
def test_docstrings_say_nothing_where_there_is_no_label(tmp_path: Path, bare: bool) -> None:
    path = tmp_path / "bare.xml"
    path.write_text(BARE if bare else OLD_STYLE.read_text(encoding="utf-8"), encoding="utf-8")
    texts = docstrings(render_package(load_dialect(path), "p"))
    assert len(texts) >= 10
    for text in texts:
        assert re.search(r"(^|\s)[,:;.]|: *\.|\.\.|  \(|(?<!Args):$", text, re.MULTILINE) is None


def test_docstrings_name_what_has_no_label(tmp_path: Path) -> None:
    path = tmp_path / "bare.xml"
    path.write_text(BARE, encoding="utf-8")
    files = render_package(load_dialect(path), "p")
    assert '"""bare, in the build that `amqpcodec.IMPL` names."""' in files["p/__init__.py"]
    assert '"""bare: methods, content headers and constants."""' in files["p/methods_py.py"]
    assert '"""bare: the facts of its methods and content headers."""' in files["p/methods_facts.py"]
    assert '"""399 gone, closes the channel."""' in files["p/reply_codes.py"]
    text = files["p/methods_py.py"]
    assert '    """bare.call (1, 1) of bare.\n\n    Args:\n        on: bit.\n    """' in text
    assert '    """The methods of class bare (1)."""' in text
    assert "        mark: octet.\n" in text
    assert "GONE = 399\n" in text


def test_no_label_can_end_a_docstring(tmp_path: Path) -> None:
    path = tmp_path / "bare.xml"
    label = 'a \\d \\" &quot;&quot;&quot; + x'
    path.write_text(BARE.replace('index="1"', f"index=\"1\" label='{label}'", 1), encoding="utf-8")
    files = render_package(load_dialect(path), "p")
    docstring = 'The methods of class bare (1): a \\d \\" """ + x.'
    assert docstring in docstrings(files)
    assert r'a \\d \\" \"\"\" + x.' in files["p/methods_py.py"]
