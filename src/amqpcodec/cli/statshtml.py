"""A summary as one HTML page with charts, which needs nothing from elsewhere and may load nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from html import escape

from ..stats import Finding, Summary
from ..stats.findings import lasting
from .statscharts import charts, script
from .statsections import Section, moment, name, number
from .statspage import Chapter, chapters

# Whatever slips into the page, the browser loads nothing for it.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #59636e; --paper: #fff; --line: #d1d9e0;
  --raised: #f3f5f7; --link: #0060a8; --error: #b3261e; --warning: #8a5300; --note: #59636e; --fine: #1a7f37 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --dim: #9da7b1; --paper: #14171b;
  --line: #3a424b; --raised: #1e2329; --link: #6cb6ff; --error: #ff8a80; --warning: #f0b429; --note: #9da7b1;
  --fine: #56d364 } }
@media print { :root { color-scheme: light; --ink: #000; --dim: #444; --paper: #fff; --line: #bbb;
  --raised: #fff; --link: #000; --error: #b3261e; --warning: #8a5300; --note: #444; --fine: #1a7f37 }
  .chart, tr, li, .tiles > div { break-inside: avoid } h2, h3 { break-after: avoid } nav { display: none } }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; max-width: 1440px; padding: 1.2rem 1rem 4rem }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere } h2 { font-size: 1.3rem; margin: 3rem 0 0;
  border-bottom: 2px solid var(--line) } h3 { font-size: 1.05rem; margin: 1.8rem 0 .3rem }
a { color: var(--link) }
p.when, p.note { color: var(--dim); margin: .2rem 0 } p.note { font-size: .9rem; max-width: 90ch }
p.verdict { font-size: 1.2rem; padding: .7rem 1rem; margin: 1rem 0; background: var(--raised);
  border-left: 5px solid var(--fine) }
p.verdict.note { border-color: var(--note); color: inherit }
p.verdict.error { border-color: var(--error) } p.verdict.warning { border-color: var(--warning) }
ul.findings { list-style: none; padding: 0; margin: 0 }
ul.findings li { display: grid; grid-template-columns: 5.5rem 1fr; gap: .2rem .8rem; padding: .35rem 0;
  border-bottom: 1px solid var(--line) }
ul.findings strong { font-weight: 600 } .error > strong { color: var(--error) }
.warning > strong { color: var(--warning) } .note > strong { color: var(--note) }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .6rem;
  margin: 1rem 0 }
.tiles > div { background: var(--raised); padding: .5rem .8rem }
.tiles dt { color: var(--dim); font-size: .85rem }
.tiles dd { margin: 0; font-size: 1.2rem; font-weight: 600 }
nav ul { list-style: none; padding: 0; margin: .2rem 0; columns: 15rem } nav li { break-inside: avoid }
nav ul ul { columns: auto; padding-left: 1rem; margin: 0 0 .4rem }
/* A shadow at a side beyond which the table goes on. */
div.wide { overflow-x: auto; background: linear-gradient(to right, var(--paper) 30%, transparent),
  linear-gradient(to left, var(--paper) 30%, transparent) 100% 0,
  linear-gradient(to right, var(--line), transparent),
  linear-gradient(to left, var(--line), transparent) 100% 0;
  background-repeat: no-repeat; background-size: 30px 100%, 30px 100%, 12px 100%, 12px 100%;
  background-attachment: local, local, scroll, scroll }
table { border-collapse: collapse; font-size: .92rem }
th { text-align: left; font-weight: 600; vertical-align: bottom }
td, th { padding: .2rem .75rem .2rem 0; border-bottom: 1px solid var(--line) }
td { vertical-align: top; max-width: 26rem; overflow-wrap: break-word; white-space: pre-wrap }
td.number, th.number { text-align: right } th.number { min-width: 4.2rem }
td.short { white-space: pre }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums }
.chart { margin: .3rem 0; overflow: hidden }
.chart text { fill: var(--ink) !important } .chart .gridlayer path, .chart .zerolinelayer path
  { stroke: var(--line) !important } .chart .hoverlayer text { fill: #fff !important }
@media (max-width: 600px) { body { font-size: 14px; padding: .8rem .7rem 3rem } td { max-width: 14rem }
  ul.findings li { grid-template-columns: 1fr; gap: 0 } p.verdict { font-size: 1.05rem } }
"""
_SHORT = 24  # characters that stand on one line
_CHAPTER = "chapter-"  # before the name of its heading, since a table may have the same title
# Charts take the width of the paper.
_PRINTED = (
    'addEventListener("beforeprint", () => document.querySelectorAll(".js-plotly-plot")'
    ".forEach(chart => Plotly.relayout(chart, {width: 680})));"
)


def page(summary: Summary) -> str:
    """The page: a verdict and the problems, then chapters of tables and their charts."""
    shown = chapters(summary)
    drawn = charts(summary)
    body = "".join(_chapter(chapter, drawn) for chapter in shown)
    files = [name(os.path.basename(file)) for file in summary.files[:3]]
    title = escape(", ".join(files) + (", ..." if len(summary.files) > 3 else ""))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>AMQP: {title}</title>\n<style>{_STYLE}</style>\n"
        f"<script>{script()}</script>\n<script>{_PRINTED}</script>\n</head>\n<body>\n"
        f"<h1>AMQP in {title}</h1>\n{_when(summary)}{_verdict(summary)}{_tiles(summary)}{_contents(shown)}"
        f"<main>\n{body}</main>\n</body>\n</html>\n"
    )


def anchor(title: str) -> str:
    """The name of a heading in links."""
    return re.sub("[^a-z]+", "-", title.lower()).strip("-")


def _when(summary: Summary) -> str:
    if summary.first_us is None or summary.last_us is None:
        return ""
    span = f"{moment(summary.first_us)} to {moment(summary.last_us)} UTC"
    return f'<p class="when">{escape(span)}</p>\n'


def _verdict(summary: Summary) -> str:
    worst = next((each.severity for each in summary.findings if each.severity != "note"), "fine")
    worst = worst if summary.totals["connections"] else "note"
    items = "".join(map(_finding, summary.findings))
    listed = f'<ul class="findings">\n{items}</ul>\n' if items else ""
    return f'<p class="verdict {worst}">{escape(summary.verdict)}</p>\n{listed}'


def _finding(finding: Finding) -> str:
    link = f'<a href="#{anchor(finding.section)}">{escape(finding.section)}</a>'
    text = f"<span>{escape(finding.text)} {link}</span>"
    return f'<li class="{finding.severity}"><strong>{finding.severity}</strong>{text}</li>\n'


def _tiles(summary: Summary) -> str:
    """The numbers that matter most; published and delivered are apart."""
    totals = summary.totals
    shown = {
        "duration": "-" if summary.duration_ns is None else lasting(summary.duration_ns),
        "connections": number(totals["connections"]),
        "messages published": number(summary.carried("publish")),
        "messages delivered": number(summary.carried("deliver", "get-ok")),
        "bytes to the broker": number(totals["octets_sent"]),
        "bytes from the broker": number(totals["octets_received"]),
    }
    tiles = "".join(f"<div><dt>{key}</dt><dd>{value}</dd></div>\n" for key, value in shown.items())
    return f'<dl class="tiles">\n{tiles}</dl>\n'


def _contents(shown: Iterable[Chapter]) -> str:
    def item(title: str, inner: str = "", prefix: str = "") -> str:
        return f'<li><a href="#{prefix}{anchor(title)}">{escape(title)}</a>{inner}</li>\n'

    items = ""
    for chapter in shown:
        sections = "".join(item(section.title) for section in chapter.sections)
        items += item(chapter.title, f"\n<ul>\n{sections}</ul>\n", _CHAPTER)
    return f'<nav aria-label="Contents">\n<ul>\n{items}</ul>\n</nav>\n'


def _chapter(chapter: Chapter, drawn: dict[str, str]) -> str:
    sections = "".join(_section(section, drawn.get(section.title, "")) for section in chapter.sections)
    return f'<h2 id="{_CHAPTER}{anchor(chapter.title)}">{escape(chapter.title)}</h2>\n{sections}'


def _section(section: Section, chart: str) -> str:
    head = "".join(_cells("th", section, section.columns))
    rows = "".join(f"<tr>{''.join(_cells('td', section, row))}</tr>\n" for row in section.rows)
    notes = "".join(f'<p class="note">{escape(note)}</p>\n' for note in section.notes)
    return (
        f'<h3 id="{anchor(section.title)}">{escape(section.title)}</h3>\n{chart}'
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n'
        f"{notes}"
    )


def _cells(tag: str, section: Section, cells: tuple[str, ...]) -> Iterator[str]:
    left = len(section.columns) - section.numbers
    for column, cell in enumerate(cells):
        kind = ' class="number"' if column >= left else ' class="short"' if len(cell) <= _SHORT else ""
        yield f"<{tag}{kind}>{escape(cell)}</{tag}>"
