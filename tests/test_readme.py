"""The documentation is true: its Python runs, its commands and links exist."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from docs_pages import pages
from support.documents import BROKER_URL, FENCE, ROOT, Example, examples
from support.examples import serving
from support.tiers import few

from amqpcodec import IMPL

README = ROOT / "README.md"
ADOPTING = ROOT / "docs" / "adopting.md"
GUIDE = ROOT / "docs" / "codec.md"
CLIENT = ROOT / "docs" / "client.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PACKAGE = ROOT / "src" / "amqpcodec"
SPEED_UP = ROOT / "docs" / "start" / "speed-up.md"
DOCUMENTS = [README, CONTRIBUTING, *sorted((ROOT / "docs").rglob("*.md")), ROOT / "spec" / "README.md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def prose(document: Path) -> str:
    """The text outside of the fenced blocks, where links are links."""
    return FENCE.sub("", document.read_text(encoding="utf-8"))


def makefile_targets() -> set[str]:
    # A makefile may include others of the repository.
    makefiles = [ROOT / "Makefile", *ROOT.glob("*/*.mk")]
    rules = "".join(path.read_text(encoding="utf-8") for path in makefiles)
    return set(re.findall(r"^([a-z][\w-]*):(?!=)", rules, re.MULTILINE))


def test_the_examples_are_found() -> None:
    assert len(examples(README)) >= 2
    assert any(example.printed for example in examples(README))
    for document in (README, ADOPTING, GUIDE, CLIENT):
        assert document.read_text(encoding="utf-8").count("```python") == len(examples(document))


def test_each_section_of_the_guide_has_one_program_which_prints() -> None:
    sections = re.split(r"^## ", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(sections) >= 14
    assert [section.count("```python") for section in sections] == [1] * len(sections)
    assert all(example.printed for example in examples(GUIDE))


def test_the_first_screen_of_the_readme_leads_to_the_guide() -> None:
    assert "docs/codec.md" in README.read_text(encoding="utf-8").partition("\n## ")[0]


def beside_nothing(document: Path) -> list[Example]:
    """Return the programs that need no broker."""
    return [example for example in examples(document) if BROKER_URL not in example.code]


def beside_a_broker(document: Path) -> list[Example]:
    """Return the others."""
    return [example for example in examples(document) if BROKER_URL in example.code]


@pytest.mark.parametrize("example", beside_nothing(README), ids=lambda example: f"line-{example.line}")
@pytest.mark.parametrize("build", ["in-use", "py"])
def test_examples_run_and_print_what_is_said(
    example: Example, build: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if build == "py":
        monkeypatch.setenv("AMQPCODEC_IMPL", "py")
    run(example, tmp_path, monkeypatch)


@pytest.mark.parametrize("example", examples(GUIDE), ids=lambda example: f"line-{example.line}")
@pytest.mark.parametrize("build", few(["in-use", "py"], 1, "programs of documents once more"))
def test_programs_of_the_guide_run_and_print_what_is_said(
    example: Example, build: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if build == "py":
        monkeypatch.setenv("AMQPCODEC_IMPL", "py")
    for library in ("trio", "anyio"):
        if f"import {library}\n" in example.code and find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    run(example, tmp_path, monkeypatch)


@pytest.fixture(scope="module", params=few(["in-use", "py"], 1, "programs of documents once more"))
def own_broker(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Serve the broker of the examples; each build in turn, and its URL."""
    build = IMPL if request.param == "in-use" else "py"
    with serving(build) as (port, _):
        yield build, f"amqp://guest:guest@127.0.0.1:{port}/"


@pytest.mark.parametrize(
    "example",
    [*beside_a_broker(README), *examples(CLIENT)],
    ids=lambda example: f"line-{example.line}",
)
def test_programs_of_clients_run_beside_a_broker(
    example: Example, own_broker: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, url = own_broker
    monkeypatch.setenv("AMQPCODEC_IMPL", build)
    run(example.beside(url), tmp_path, monkeypatch)


def test_every_program_of_the_guide_of_the_client_prints() -> None:
    found = examples(CLIENT)
    assert len(found) >= 8
    assert all(example.printed for example in found)
    assert len(beside_a_broker(CLIENT)) == len(found) - 1


@pytest.mark.parametrize(
    "example", [*examples(ADOPTING), *examples(SPEED_UP)], ids=lambda example: f"line-{example.line}"
)
def test_examples_of_adopting_run_and_print_what_is_said(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The pure build accelerates nothing.
    for needed in ("pamqp", "pika", "kombu", "aiormq", "amqpcodec._kernel.reader_c"):
        pytest.importorskip(needed)
    monkeypatch.delenv("AMQPCODEC_IMPL", raising=False)
    run(example, tmp_path, monkeypatch)


def run(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example.code],
        cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=30,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    if example.printed is not None:
        assert done.stdout == example.printed


def test_the_make_commands_exist() -> None:
    named = {
        word
        for path in DOCUMENTS
        for word in re.findall(r"(?:^\s+|`)make ([\w-]+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {"demo", "test"} <= named
    assert named <= makefile_targets()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_relative_links_point_to_files(document: Path) -> None:
    links = [link for link in LINK.findall(prose(document)) if not re.match(r"[a-z]+:|#", link)]
    paths = {link: (document.parent / link.partition("#")[0]).resolve() for link in links}
    generated = {ROOT / "docs" / path for path in pages()}
    assert [link for link, path in paths.items() if not path.exists() and path not in generated] == []


def test_the_readme_has_links() -> None:
    assert len(LINK.findall(prose(README))) >= 3


def test_named_files_of_the_repository_exist() -> None:
    table = re.findall(r"^\| (`[^|]+) \|", README.read_text(encoding="utf-8"), re.MULTILINE)
    paths = [path for cell in table for path in re.findall(r"`([\w./]+/[\w./]*)`", cell)]
    assert len(paths) >= 5
    # A bare folder after a path, such as `cli/`, lies beside that one.
    assert [
        path for path in paths if not list(ROOT.glob(path)) and not list(ROOT.glob(f"src/*/{path}"))
    ] == []


@pytest.mark.parametrize(("document", "least"), [(ARCHITECTURE, 30), (CONTRIBUTING, 10)])
def test_files_that_a_document_for_developers_names_exist(document: Path, least: int) -> None:
    named = set(re.findall(r"`([\w./*]+)`", prose(document)))
    # `X` stands for any module that has two builds.
    paths = {name for name in named if re.search(r"/|\.(py|pxd|pyx)$", name) and not name.startswith("X_")}
    assert len(paths) >= least
    folders = (ROOT, PACKAGE, *(folder for folder in PACKAGE.iterdir() if folder.is_dir()))
    assert [name for name in sorted(paths) if not any(has(folder, name) for folder in folders)] == []


def test_modules_in_the_tables_of_the_architecture_exist() -> None:
    tables = re.findall(r"^\| text in `(\w+)` \|.*\n\| -.*\n((?:\|.*\n)+)", prose(ARCHITECTURE), re.MULTILINE)
    assert {package for package, _ in tables} >= {"_kernel", "_columns", "compat", "capture", "spark"}
    for package, rows in tables:
        names = [name for row in rows.splitlines() for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
        assert [name for name in names if not has(PACKAGE / package, name)] == []


def test_classes_that_the_architecture_names_exist() -> None:
    sources = [
        path.read_text(encoding="utf-8") for kind in ("py", "pyx") for path in PACKAGE.rglob(f"*.{kind}")
    ]
    defined = {name for text in sources for name in re.findall(r"^(?:cdef )?class (\w+)", text, re.MULTILINE)}
    named = set(re.findall(r"`([A-Z]\w+[a-z]\w*)[`(.]", prose(ARCHITECTURE)))
    assert len(named) >= 25
    assert sorted(named - defined - {"RecursionError", "TypeError", "TypedDict", "X_c", "X_py"}) == []


def has(folder: Path, name: str) -> bool:
    """Whether there is a file or folder of a name, or a module of it in one of the builds."""
    return any(any(folder.glob(name + ending)) for ending in ("", ".py", "_py.py", ".pyx", "_c.pyx", ".pxd"))
