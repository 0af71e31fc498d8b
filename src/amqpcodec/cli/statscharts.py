"""The charts of a page, drawn by plotly. Colours of text and grid are left to the style of the page.

A summary always gives the same octets: what plotly would name at random has a number here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import count
from typing import Any

from plotly import graph_objects, offline
from plotly.io import to_html

from ..stats import Latency, Life, Ranking, Rates, Summary
from ..stats.findings import lasting
from .statsections import ended, key_text, name
from .statspage import by_published

# Those of Okabe and Ito's colours that stand out from white and from black. Lines differ by dashes, too.
PALETTE = {
    "publish": "#0072b2",
    "deliver": "#d55e00",
    "get-ok": "#009e73",
    "return": "#cc79a7",
    "other": "#808080",
}
# What ended connections and channels: colours beside those of messages, and patterns of bars.
ENDS = {
    "closed": ("#808080", ""),
    "with its connection": ("#808080", "|"),
    "open at the end": ("#7b61c9", ""),
    "without connection.close": ("#a8780a", "/"),
    "closed by an error": ("#d13438", "x"),
}
_PATTERN = {"fillmode": "overlay", "size": 6, "fgcolor": "#fff", "fgopacity": 0.6}
_SAME = {"published": "publish", "delivered": "deliver", "confirms": "publish", "acknowledgements": "deliver"}
_DASHES = {"publish": "solid", "deliver": "dash", "get-ok": "dot", "return": "dashdot"}
_CONFIG = {"displayModeBar": False, "responsive": True}
_SECOND = 1_000_000_000
_CLOCK = "clock time (UTC)"
_LONGEST = 28
_FEW = 8
_ROW = 26  # pixels of a bar and the space around it
_MOST_ROWS = 60  # of connections and channels; of more, the channels that ended well are left out


def script() -> str:
    """The library that draws, as JavaScript."""
    return str(offline.get_plotlyjs())


def charts(summary: Summary) -> dict[str, str]:
    """Charts by the title of the table that they stand above."""
    numbers = count(1)
    return {
        title: "".join(_html(figure, f"chart-{next(numbers)}") for figure in figures)
        for title, figures in _figures(summary).items()
    }


def _figures(summary: Summary) -> dict[str, Iterator[Any]]:
    both = ("published", "delivered")
    return {
        "Messages": _over_time(summary),
        "Exchanges": _bars(by_published(summary.exchanges), both),
        "Publish to confirm": _latency(summary, summary.confirms, "confirms"),
        "Deliver to acknowledgement": _latency(summary, summary.acks, "acknowledgements"),
        "Queues delivered from": _bars(summary.queues, ("messages",), "delivered"),
        "Connections and channels over time": _lives(summary),
    }


def _color(what: str) -> str:
    return PALETTE.get(_SAME.get(what, what), PALETTE["other"])


def _rank(item: tuple[str, object]) -> int:
    """Where a kind stands in the legend."""
    return [*PALETTE].index(item[0] if item[0] in PALETTE else "other")


def _over_time(summary: Summary) -> Iterator[Any]:
    rates, span = summary.rates, _span(summary)
    if rates.start_ns is None or span is None:
        return
    for what, by_kind in (("messages a second", rates.messages), ("bytes of bodies a second", rates.octets)):
        figure = graph_objects.Figure()
        for kind, counts in sorted(by_kind.items(), key=_rank):
            times, values = steps(rates, counts, span)
            figure.add_scatter(
                x=times, y=values, name=_label(kind), mode="lines", line_shape="hv",
                line={"color": _color(kind), "width": 2, "dash": _DASHES.get(kind, "longdash")},
            )  # fmt: skip
        yield _laid_out(_timed(figure, span), _CLOCK, what, legend=True)


def _span(summary: Summary) -> tuple[int, int] | None:
    """The first and last time of the recording, at least a millisecond apart; None without times."""
    if summary.first_us is None or summary.last_us is None:
        return None
    first, last = summary.first_us * 1000, summary.last_us * 1000
    return first, max(last, first + 1_000_000)


def _timed(figure: Any, span: tuple[int, int]) -> Any:
    """The figure, across whose width lies the time of the recording."""
    figure.update_xaxes(type="date", nticks=5, range=list(map(_clock, span)))
    return figure


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


def _bars(ranking: Ranking, counts: tuple[str, ...], called: str = "") -> Iterator[Any]:
    """Horizontal bars, the longest list of names first; counts stand side by side, never one on the other."""
    rows = ranking.rows[::-1]
    if not rows:
        return
    positions = list(range(len(rows)))
    names = [key_text(ranking.keys[-1], row[ranking.keys[-1]]) for row in rows]
    figure = graph_objects.Figure()
    for each in counts[::-1]:  # the last one is on top
        what = called or each
        figure.add_bar(
            y=positions, x=[row[each] for row in rows], name=what, orientation="h",
            marker_color=_color(what), hovertext=list(map(_label, names)),
        )  # fmt: skip
    figure.update_yaxes(tickvals=positions, ticktext=[_label(_cut(each)) for each in names], automargin=True)
    figure.update_xaxes(rangemode="tozero", dtick=_step(row[each] for row in rows for each in counts))
    figure.update_layout(barmode="group", legend_traceorder="reversed")
    height = 110 + _ROW * len(rows) * len(counts)
    yield _laid_out(figure, "messages", None, height=height, legend=len(counts) > 1)


def _latency(summary: Summary, latency: Latency, what: str) -> Iterator[Any]:
    """How many answers took how long, and how long they took when."""
    if not latency.count:
        return
    figure = graph_objects.Figure()
    figure.add_bar(
        x=[lasting(end) for end, _ in latency.histogram],
        y=[count for _, count in latency.histogram],
        name=what,
        marker_color=_color(what),
    )
    figure.update_xaxes(type="category", nticks=10)
    figure.update_yaxes(dtick=_step(count for _, count in latency.histogram))
    yield _laid_out(figure, "took at most", what)
    span = _span(summary)
    if span is not None:
        yield _laid_out(_timed(_band(latency, what), span), _CLOCK, "took", legend=True)


def _band(latency: Latency, what: str) -> Any:
    """A line at the half of the answers in each interval, and a bar from there to the slowest hundredth."""
    band = latency.over_time
    known = [
        ((band.start_ns or 0) + index * band.width_ns, max(p50, 1), max(p99, 1))
        for index, (p50, p99) in enumerate(zip(band.p50_ns, band.p99_ns, strict=True))
        if p50 is not None and p99 is not None
    ]
    corners = [(time, p50) for start, p50, _ in known for time in (start, start + band.width_ns, None)]
    figure = graph_objects.Figure()
    figure.add_bar(
        x=[_clock(start) for start, *_ in known],
        y=[p99 - p50 for _, p50, p99 in known],
        base=[p50 for _, p50, _ in known],
        offset=0,
        width=band.width_ns / 1_000_000,
        name="p50 to p99",
        opacity=0.45,
        marker={"color": _color(what), "line": {"color": _color(what), "width": 1}},
        hovertext=[f"p50 {lasting(p50)}, p99 {lasting(p99)}" for _, p50, p99 in known],
        hoverinfo="x+text",
    )
    figure.add_scatter(
        x=[None if time is None else _clock(time) for time, _ in corners],
        y=[None if time is None else p50 for time, p50 in corners],
        name="p50", mode="lines", hoverinfo="skip", line={"color": _color(what), "width": 2},
    )  # fmt: skip
    low, high = min(p50 for _, p50, _ in known), max(p99 for *_, p99 in known)
    decades = range(len(str(low)) - 1, len(str(high)) + 1)
    marks = [10**decade for decade in decades]
    figure.update_yaxes(
        type="log",
        tickvals=marks,
        ticktext=list(map(lasting, marks)),
        range=[decades[0], decades[-1]],
        automargin=True,
        title_standoff=8,
    )
    return figure


def _lives(summary: Summary) -> Iterator[Any]:
    """A bar for each connection, and below it for channels."""
    span = _span(summary)
    lives = [life for life in summary.lives if life.begin_ns is not None and life.end_ns is not None]
    if len(lives) > _MOST_ROWS:
        lives = [life for life in lives if not life.channel or life.went_wrong]
    if span is None or not lives:
        return
    figure = graph_objects.Figure()
    for what, (color, pattern) in ENDS.items():
        rows = [(place, life) for place, life in enumerate(lives) if _end_of(life) == what]
        if rows:
            figure.add_bar(
                y=[place for place, _ in rows],
                base=[_clock(life.begin_ns or 0) for _, life in rows],
                x=[max(life.duration_ns or 0, (span[1] - span[0]) // 250) / 1_000_000 for _, life in rows],
                name=what, orientation="h", hoverinfo="text",
                hovertext=[_label(f"{_called(life)}: {ended(life)}") for _, life in rows],
                width=[0.4 if life.channel else 0.75 for _, life in rows],
                marker={"color": color, "pattern": {**_PATTERN, "shape": pattern}},
            )  # fmt: skip
    places = list(range(len(lives)))
    labels = [_label(_cut(_called(life))) for life in lives]
    figure.update_yaxes(
        tickvals=places, ticktext=labels, automargin=True, range=[len(lives) - 0.5, -0.5], showgrid=False
    )
    figure.update_layout(barmode="overlay")
    height = 120 + _ROW * len(lives)
    yield _laid_out(_timed(figure, span), _CLOCK, None, height=height, legend=True)


def _called(life: Life) -> str:
    if life.channel:
        return f"channel {life.channel}"
    return name(life.client) + (f" {name(life.name)}" if life.name else "")


def _end_of(life: Life) -> str:
    """Return what ended a connection or channel, as in the legend."""
    if life.ended == "closed":
        return "closed by an error" if life.went_wrong else "closed"
    return _ENDS.get(life.ended, "with its connection")


_ENDS = {"broken": "without connection.close", "recording": "open at the end", "unknown": "unknown"}


def _laid_out(figure: Any, across: str, up: str | None, *, height: int = 300, legend: bool = False) -> Any:
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
    return figure


def _html(figure: Any, name: str) -> str:
    html: str = to_html(figure, include_plotlyjs=False, full_html=False, config=_CONFIG, div_id=name)
    return f'<div class="chart">{html}</div>\n'


def _step(counts: Iterable[int]) -> int | None:
    """Between two marks of an axis: at least one, or what plotly takes for larger counts."""
    return 1 if max(counts, default=0) < _FEW else None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _label(text: str) -> str:
    """A name in a chart, where some tags would be taken as such."""
    return escape(text, quote=False)
