"""Hooks for mkdocs: add the generated pages to the site, those outside of `docs`, and scripts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url
from prepare_release import by_name

from docs_pages import ROOT, pages
from docs_pages.searches import lost
from docs_pages.written import ELSEWHERE, indented, relinked

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

SCRIPTS = ("mermaid.min.js", "iframe-worker.js")
"""Scripts that draw diagrams, and let the search work without a server. `make docs` fetches them by npm."""

_SCRIPT_FOLDER = "assets/javascripts"
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)


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
    if config.repo_url:
        text = text.replace("<the repository>", config.repo_url)
    if config.extra["released"]:
        text = by_name(text)
    if "```mermaid" in markdown and _scripts()[0].is_file():
        script = get_relative_url(f"{_SCRIPT_FOLDER}/{SCRIPTS[0]}", page.url)
        text += f'\n\n<script src="{script}"></script>\n'
    return text


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """In a cell of a table a bar is escaped, and Python-Markdown keeps the escape in code."""
    return _TABLE.sub(lambda found: found[0].replace("\\|", "|"), html)


def on_post_build(config: MkDocsConfig) -> None:
    """Search for what readers search for.

    Raises:
        PluginError: a search does not lead to its page.
    """
    index = Path(config.site_dir) / "search" / "search_index.json"
    if wrong := lost(json.loads(index.read_text(encoding="utf-8"))["docs"]):
        raise PluginError("\n".join(wrong))


def _scripts() -> list[Path]:
    return [ROOT / "build" / "docs" / "scripts" / name for name in SCRIPTS]


def _diagram(source: str, language: str, css_class: str, *_: Any, **__: Any) -> str:
    """A diagram as the theme expects it, which draws it in the reader's colours."""
    import html

    return f'<pre class="{css_class}"><code>{html.escape(source)}</code></pre>'
