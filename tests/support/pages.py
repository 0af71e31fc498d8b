"""Reads pages of `amqpcodec stats`."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any


class Page(HTMLParser):
    """Tables by the heading before them, and whatever links or could load something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[tuple[str, ...]]] = {}
        self.headings: list[str] = []
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.verdict = ""
        self.findings: list[str] = []
        self.tiles: dict[str, str] = {}
        self.scripts = 0
        self.loads: list[tuple[str, str | None]] = []
        self._title, self._row, self._text, self._kind, self._tile = "", [""], "", "", ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.scripts += tag == "script"
        targets = (given.get("src"), given.get("href"))
        self.loads += [(tag, target) for target in targets if not (target or "#").startswith("#")]
        if tag == "a":
            self.links.append((given.get("href") or "").removeprefix("#"))
            return
        if tag in ("h2", "h3"):
            self.anchors.append(given.get("id") or "")
        if tag in ("p", "li"):
            self._kind = given.get("class") or ""
        self._text = ""
        if tag == "tr":
            self._row = []

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("h2", "h3"):
            self.headings.append(self._text)
            self._title = self._text
        elif tag in ("td", "th"):
            self._row.append(self._text)
        elif tag == "tr":
            self.tables.setdefault(self._title, []).append(tuple(self._row))
        elif tag == "dt":
            self._tile = self._text
        elif tag == "dd":
            self.tiles[self._tile] = self._text
        elif tag == "p" and self._kind.startswith("verdict"):
            self.verdict = self._text
        elif tag == "span" and self._kind in ("error", "warning", "note"):
            self.findings.append(self._text)


def charts_of(text: str) -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Data and layout of each chart in a page."""
    decoder = json.JSONDecoder()
    found = []
    for call in re.finditer(r'Plotly\.newPlot\(\s*"[^"]*",\s*', text):
        data, end = decoder.raw_decode(text, call.end())
        layout, _ = decoder.raw_decode(text, text.index("{", end))
        found.append((data, layout))
    return found
