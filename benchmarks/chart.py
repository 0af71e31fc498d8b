"""A bar chart of a few work items, drawn as SVG from the stored results."""

from __future__ import annotations

from xml.sax.saxutils import escape

from peers import FACTORIES
from results import Results

PANELS = {
    "Consume a delivery, 256 octets: 3 frames, 3 fields": "consume deliveries, 256 B, varied",
    "Decode a delivery, 256 octets": "decode deliveries, 256 B, varied",
    "Encode a publish, 256 octets": "encode publishes, 256 B, varied",
    "Decode a content header, 14 properties": "decode headers, 14 properties",
    "Decode a field table of 10 mixed entries": "decode table, 10 mixed",
    "Decode basic.ack": "decode basic.ack",
}
WIDTH = 400  # that of a phone, where the picture is hardly made smaller
LABELS = 122  # to the left of the bars
VALUES = 108  # to the right of the longest bar
BAR, GAP, HEAD = 14, 5, 34
STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 13px }
.bar { fill: #9aa4af }
.ours { fill: #1f883d }
.pure { fill: #7cc48f }
@media (prefers-color-scheme: dark) {
  text { fill: #d1d7dd }
  .bar { fill: #59636e }
  .ours { fill: #3fb950 }
  .pure { fill: #2b6a3a }
}"""


def draw(results: Results) -> str:
    """The whole picture."""
    parts: list[str] = []
    top = 0
    for title, item in PANELS.items():
        if item in results.items:
            top = _panel(parts, results, title, item, top)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top + 10}" role="img"'
    described = "Time of one operation with each library; shorter is better"
    lines = [f'{head} viewBox="0 0 {WIDTH} {top + 10}" aria-label="{described}">', f"<style>{STYLE}</style>"]
    return "\n".join([*lines, *parts, "</svg>\n"])


def _panel(parts: list[str], results: Results, title: str, item: str, top: int) -> int:
    """One work item: a title and a bar for each library; the top of the next panel."""
    figures = results.items[item]
    longest = max(figure for name, figure in figures.items() if name in FACTORIES)
    parts.append(f'<text class="title" x="4" y="{top + 24}">{escape(title)}</text>')
    top += HEAD
    for name in FACTORIES:
        if name not in figures:
            continue
        nanoseconds = figures[name]
        width = max(1.0, (WIDTH - LABELS - VALUES) * nanoseconds / longest)
        style = {"amqpcodec": "bar ours", "amqpcodec pure": "bar pure"}.get(name, "bar")
        base = top + BAR - 3
        value = escape(_value(nanoseconds, results.ratio(item, name) if name != "amqpcodec" else None))
        parts.append(f'<text x="{LABELS - 8}" y="{base}" text-anchor="end">{escape(name)}</text>')
        parts.append(
            f'<rect class="{style}" x="{LABELS}" y="{top}" width="{width:.1f}" height="{BAR}" rx="2"/>'
        )
        parts.append(f'<text x="{LABELS + width + 6:.1f}" y="{base}">{value}</text>')
        top += BAR + GAP
    return top


def _value(nanoseconds: float, ratio: float | None) -> str:
    time = f"{nanoseconds:.0f} ns" if nanoseconds < 1000 else f"{nanoseconds / 1000:.1f} \u00b5s"
    return f"{time} ({ratio:.1f}\u00d7)" if ratio is not None else time
