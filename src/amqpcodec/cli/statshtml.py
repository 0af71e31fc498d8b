"""A summary as one HTML page with charts, which needs nothing from elsewhere and may load nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from ..stats import Latency, Ranking, Rates, Summary
from .statsections import Section, duration, name, per_second

try:
    from plotly import graph_objects, offline
    from plotly.io import to_html
except ImportError as error:
    raise ImportError('HTML pages need plotly: pip install "amqpcodec[report]"') from error

# Whatever slips into the page, the browser loads nothing for it.
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; color: #222 }
body { margin: 2rem auto; max-width: 1200px; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2.2rem }
div.wide { overflow-x: auto }
table { border-collapse: collapse } th { text-align: left; font-weight: 600 }
td, th { padding: .15rem .8rem .15rem 0; white-space: pre; border-bottom: 1px solid #ddd }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
p.note { color: #666 }
"""
_CONFIG = {"displaylogo": False, "responsive": True}


def page(summary: Summary, sections: Iterable[Section]) -> str:
    """The page: each section as a table, and charts below those that they belong to."""
    charts = _charts(summary)
    body = "".join(_section(section) + charts.get(section.title, "") for section in sections)
    title = escape(", ".join(map(name, summary.files[:3])) + (", ..." if len(summary.files) > 3 else ""))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>AMQP: {title}</title>\n<style>{_STYLE}</style>\n"
        f"<script>{offline.get_plotlyjs()}</script>\n"
        f"</head>\n<body>\n<h1>AMQP in {title}</h1>\n{body}</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    head = "".join(_cells("th", section, section.columns))
    rows = "".join(f"<tr>{''.join(_cells('td', section, row))}</tr>\n" for row in section.rows)
    notes = "".join(f'<p class="note">{escape(note)}</p>\n' for note in section.notes)
    return (
        f'<h2>{escape(section.title)}</h2>\n<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}</tbody></table></div>\n{notes}"
    )


def _cells(tag: str, section: Section, cells: tuple[str, ...]) -> Iterator[str]:
    left = len(section.columns) - section.numbers
    for column, cell in enumerate(cells):
        kind = "" if column < left else ' class="number"'
        yield f"<{tag}{kind}>{escape(cell)}</{tag}>"


def _charts(summary: Summary) -> dict[str, str]:
    """Charts by the title of the section that they stand below."""
    return {
        "Rates": _over_time(summary.rates),
        "Exchanges": _bars(summary.exchanges, ("published", "delivered")),
        "Queues delivered from": _bars(summary.queues, ("messages",)),
        "Publish to confirm": _histogram(summary.confirms),
        "Deliver to acknowledgement": _histogram(summary.acks),
    }


def _over_time(rates: Rates) -> str:
    if rates.start_ns is None:
        return ""
    drawn = ""
    for what, by_kind in (("messages/s", rates.messages), ("octets/s", rates.octets)):
        figure = graph_objects.Figure()
        for kind, counts in by_kind.items():
            positions = range(len(counts))
            figure.add_scatter(
                x=[at * rates.width_ns / 1e9 for at in positions],
                y=[per_second(count, rates.width_ns) for count in counts],
                name=_label(kind), mode="lines", line_shape="hv",
            )  # fmt: skip
        drawn += _drawn(figure, "seconds from the beginning", what)
    return drawn


def _bars(ranking: Ranking, counts: tuple[str, ...]) -> str:
    labels = [_label(name(row[ranking.keys[-1]])) for row in ranking.rows]
    figure = graph_objects.Figure()
    for count in counts:
        figure.add_bar(x=labels, y=[row[count] for row in ranking.rows], name=count)
    figure.update_xaxes(type="category")
    return _drawn(figure, ranking.keys[-1], "messages")


def _histogram(latency: Latency) -> str:
    figure = graph_objects.Figure()
    figure.add_bar(
        x=[f"to {duration(end)}" for end, _ in latency.histogram],
        y=[count for _, count in latency.histogram],
    )
    figure.update_xaxes(type="category")
    return _drawn(figure, "took", "answers")


def _drawn(figure: Any, across: str, up: str) -> str:
    figure.update_layout(
        template="plotly_white", height=320, margin={"l": 60, "r": 20, "t": 20, "b": 60},
        xaxis_title=across, yaxis_title=up, showlegend=len(figure.data) > 1,
    )  # fmt: skip
    html: str = to_html(figure, include_plotlyjs=False, full_html=False, config=_CONFIG)
    return html


def _label(text: str) -> str:
    """A name in a chart, where some tags would be taken as such."""
    return escape(text, quote=False)
