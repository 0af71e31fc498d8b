"""What mkdocs calls: adds the generated pages to the site, those outside of `docs`, and scripts."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

from docs_pages import ROOT, pages

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "spec/README.md": "spec.md",
}
"""Pages that are not in `docs`, and where they are in the site."""

SCRIPTS = ("mermaid.min.js", "iframe-worker.js")
"""What draws diagrams, and what lets the search work without a server. `make docs` fetches them by npm."""

_SCRIPT_FOLDER = "assets/javascripts"
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_ITEM = re.compile(r"(?:[-*]|\d\.) (?=\S)")
_LINK = re.compile(r"(\]\()([^)\s:#]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> None:
    """Use the scripts if they are there; nothing is loaded from other hosts if they are not."""
    if not all(map(Path.is_file, _scripts())):
        config.extra["polyfills"] = []
        return
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault("custom_fences", [])
    fences.append({"name": "mermaid", "class": "mermaid", "format": _diagram})


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add what is not in `docs`."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    for source, path in ELSEWHERE.items():
        files.append(File.generated(config, path, content=(ROOT / source).read_text(encoding="utf-8")))
    for capture in (ROOT / "examples").glob("*.pcap"):
        files.append(File.generated(config, f"examples/{capture.name}", abs_src_path=str(capture)))
    for script in filter(Path.is_file, _scripts()):
        files.append(File.generated(config, f"{_SCRIPT_FOLDER}/{script.name}", abs_src_path=str(script)))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files of the repository to their pages, and load what draws the diagrams of a page."""
    source = {path: source for source, path in ELSEWHERE.items()}.get(
        page.file.src_uri, f"docs/{page.file.src_uri}"
    )
    text = relinked(indented(markdown), source, page.file.src_uri)
    if "```mermaid" in markdown and _scripts()[0].is_file():
        script = get_relative_url(f"{_SCRIPT_FOLDER}/{SCRIPTS[0]}", page.url)
        text += f'\n\n<script src="{script}"></script>\n'
    return text


def indented(markdown: str) -> str:
    """Text whose lists are as Python-Markdown wants them: what belongs to an item is 4 columns in.

    Elsewhere, as where the repository is read, it begins where the text of the item begins.
    """
    lines, column, fenced = [], 0, False
    for line in markdown.splitlines():
        if item := None if fenced else _ITEM.match(line):
            column = len(item[0])
        elif column and line.startswith(" " * column):
            line = " " * (4 - column) + line
        elif line.strip():
            column = 0
            fenced ^= line.startswith("```")
        lines.append(line)
    return "\n".join(lines) + "\n"


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """In a cell of a table a bar is escaped, and Python-Markdown keeps the escape in code."""
    return _TABLE.sub(lambda found: found[0].replace("\\|", "|"), html)


def relinked(markdown: str, source: str, path: str) -> str:
    """Text of the repository with links for the site.

    Args:
        markdown: the text.
        source: the file that it is of, in the repository.
        path: its page in the site.
    """

    def changed(found: re.Match[str]) -> str:
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
        target, anchor = _in_site(file, found[3] or "")
        return f"{found[1]}{posixpath.relpath(target, posixpath.dirname(path) or '.')}{anchor})"

    return _LINK.sub(changed, markdown)


def _in_site(file: str, anchor: str) -> tuple[str, str]:
    """The page of a file of the repository, and the place on it."""
    if file.startswith("examples/") and file.endswith(".py"):
        return "examples.md", f"#{file.removeprefix('examples/')}"
    return ELSEWHERE.get(file, file.removeprefix("docs/")), anchor


def _scripts() -> list[Path]:
    return [ROOT / "build" / "docs" / "scripts" / name for name in SCRIPTS]


def _diagram(source: str, language: str, css_class: str, *_: Any, **__: Any) -> str:
    """A diagram as the theme expects it, which draws it in the reader's colours."""
    import html

    return f'<pre class="{css_class}"><code>{html.escape(source)}</code></pre>'
