"""The charts of a page, drawn by plotly. Colours of text and grid are left to the style of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from plotly import graph_objects, offline
from plotly.io import to_html

from ..stats import Latency, Ranking, Rates, Summary
from ..stats.findings import lasting
from .statsections import key_text
from .statspage import by_published

# Those of Okabe and Ito's colours that stand out from white and from black. Lines differ by dashes, too.
PALETTE = {
    "publish": "#0072b2",
    "deliver": "#d55e00",
    "get-ok": "#009e73",
    "return": "#cc79a7",
    "other": "#808080",
}
_SAME = {"published": "publish", "delivered": "deliver", "confirms": "publish", "acknowledgements": "deliver"}
_DASHES = {"publish": "solid", "deliver": "dash", "get-ok": "dot", "return": "dashdot"}
_CONFIG = {"displayModeBar": False, "responsive": True}
_SECOND = 1_000_000_000
_LONGEST = 28
_FEW = 8
_ROW = 26  # pixels of a bar and the space around it


def script() -> str:
    """The library that draws, as JavaScript."""
    return str(offline.get_plotlyjs())


def charts(summary: Summary) -> dict[str, str]:
    """Charts by the title of the table that they stand above."""
    both = ("published", "delivered")
    return {
        "Messages": _over_time(summary),
        "Exchanges": _bars(by_published(summary.exchanges), both),
        "Publish to confirm": _histogram(summary.confirms, "confirms"),
        "Deliver to acknowledgement": _histogram(summary.acks, "acknowledgements"),
        "Queues delivered from": _bars(summary.queues, ("messages",), "delivered"),
    }


def _color(what: str) -> str:
    return PALETTE.get(_SAME.get(what, what), PALETTE["other"])


def _rank(item: tuple[str, object]) -> int:
    """Where a kind stands in the legend."""
    return [*PALETTE].index(item[0] if item[0] in PALETTE else "other")


def _over_time(summary: Summary) -> str:
    rates = summary.rates
    if rates.start_ns is None or summary.first_us is None or summary.last_us is None:
        return ""
    span = summary.first_us * 1000, summary.last_us * 1000
    drawn = ""
    for what, by_kind in (("messages a second", rates.messages), ("bytes of bodies a second", rates.octets)):
        figure = graph_objects.Figure()
        for kind, counts in sorted(by_kind.items(), key=_rank):
            times, values = steps(rates, counts, span)
            figure.add_scatter(
                x=times, y=values, name=_label(kind), mode="lines", line_shape="hv",
                line={"color": _color(kind), "width": 2, "dash": _DASHES.get(kind, "longdash")},
            )  # fmt: skip
        ends = span[0], max(span[1], span[0] + 1_000_000)
        figure.update_xaxes(type="date", nticks=5, range=list(map(_clock, ends)))
        drawn += _drawn(figure, "clock time (UTC)", what, legend=True)
    return drawn


def steps(rates: Rates, counts: Sequence[int], span: tuple[int, int]) -> tuple[list[str | None], list[float]]:
    """Rates over the whole recording as the corners of a line in steps: times of day, and values."""
    start, width = rates.start_ns or 0, rates.width_ns
    at = [start + index * width for index in range(len(counts) + 1)]
    values = [count * _SECOND / width for count in counts]
    values.append(0.0 if span[1] > at[-1] else values[-1])
    if span[0] < start:
        at, values = [span[0], *at], [0.0, *values]
    if span[1] > at[-1]:
        at, values = [*at, span[1]], [*values, 0.0]
    return list(map(_clock, at)), values


def _clock(time_ns: int) -> str | None:
    """A date and time as plotly takes it; None beyond what a calendar has."""
    try:
        moment = datetime.fromtimestamp(time_ns // _SECOND, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return f"{moment:%Y-%m-%d %H:%M:%S}.{time_ns % _SECOND // 1000:06}"


def _bars(ranking: Ranking, counts: tuple[str, ...], called: str = "") -> str:
    """Horizontal bars, the longest list of names first; counts stand side by side, never one on the other."""
    rows = ranking.rows[::-1]
    if not rows:
        return ""
    positions = list(range(len(rows)))
    names = [key_text(ranking.keys[-1], row[ranking.keys[-1]]) for row in rows]
    figure = graph_objects.Figure()
    for count in counts[::-1]:  # the last one is on top
        what = called or count
        figure.add_bar(
            y=positions, x=[row[count] for row in rows], name=what, orientation="h",
            marker_color=_color(what), hovertext=list(map(_label, names)),
        )  # fmt: skip
    figure.update_yaxes(tickvals=positions, ticktext=[_label(_cut(each)) for each in names], automargin=True)
    figure.update_xaxes(rangemode="tozero", dtick=_step(row[count] for row in rows for count in counts))
    figure.update_layout(barmode="group", legend_traceorder="reversed")
    height = 110 + _ROW * len(rows) * len(counts)
    return _drawn(figure, "messages", None, height=height, legend=len(counts) > 1)


def _histogram(latency: Latency, what: str) -> str:
    if not latency.count:
        return ""
    figure = graph_objects.Figure()
    figure.add_bar(
        x=[lasting(end) for end, _ in latency.histogram],
        y=[count for _, count in latency.histogram],
        name=what,
        marker_color=_color(what),
    )
    figure.update_xaxes(type="category")
    figure.update_yaxes(dtick=_step(count for _, count in latency.histogram))
    return _drawn(figure, "took at most", what)


def _drawn(figure: Any, across: str, up: str | None, *, height: int = 300, legend: bool = False) -> str:
    clear = "rgba(0,0,0,0)"
    figure.update_layout(
        template=None, height=height, margin={"l": 60, "r": 16, "t": 36, "b": 56},
        paper_bgcolor=clear, plot_bgcolor=clear, font={"family": "system-ui, sans-serif", "size": 13},
        xaxis_title=across, yaxis_title=up, showlegend=legend, bargap=0.3,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "bgcolor": clear},
    )  # fmt: skip
    figure.update_xaxes(automargin=True, title_standoff=8)
    if up is not None:
        figure.update_yaxes(rangemode="tozero")
    html: str = to_html(figure, include_plotlyjs=False, full_html=False, config=_CONFIG)
    return f'<div class="chart">{html}</div>\n'


def _step(counts: Iterable[int]) -> int | None:
    """Between two marks of an axis: at least one, or what plotly takes for larger counts."""
    return 1 if max(counts, default=0) < _FEW else None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _label(text: str) -> str:
    """A name in a chart, where some tags would be taken as such."""
    return escape(text, quote=False)
