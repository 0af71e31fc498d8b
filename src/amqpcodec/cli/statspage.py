"""A summary as the parts of a page: problems first, then traffic, latencies, queues and connections."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..capture import DIRECTION_NAMES
from ..stats import Latency, Ranking, Rates, Summary
from ..stats.findings import lasting
from . import statsections as tables
from .statsections import Section, duration, name, number, per_second, whole


@dataclass(frozen=True)
class Chapter:
    """Some tables about one subject.

    Attributes:
        title: what it is about.
        sections: those that have something in them.
    """

    title: str
    sections: list[Section]


def chapters(summary: Summary) -> list[Chapter]:
    """Return the chapters that have something in them, in the order in which they are to be read."""
    made = [
        Chapter("Traffic", list(_traffic(summary))),
        Chapter("Latencies", list(_latencies(summary))),
        Chapter("Queues", list(_queues(summary))),
        Chapter("Connections", list(_connections(summary))),
        Chapter("Recording", list(_recording(summary))),
    ]
    shown = [[_short(each, summary.files) for each in chapter.sections if each.rows] for chapter in made]
    return [
        replace(chapter, sections=sections) for chapter, sections in zip(made, shown, strict=True) if sections
    ]


def by_published(ranking: Ranking) -> Ranking:
    """A ranking by the messages published, then by those delivered, not by their sum."""
    rows = sorted(ranking.rows, key=lambda row: (-row["published"], -row["delivered"]))
    return replace(ranking, rows=rows)


def _traffic(summary: Summary) -> Iterator[Section]:
    yield _rates(summary.rates, summary.kinds, summary.duration_ns)
    both = ("published", "octets_published", "delivered", "octets_delivered")
    columns = ("published", "bytes published", "delivered", "bytes delivered")
    yield tables.exchanges(summary, by_published(summary.exchanges), columns, both)
    routing_keys = by_published(summary.routing_keys)
    yield tables.ranked("Routing keys", routing_keys, ("exchange", "routing key", *columns), both)
    yield tables.returned(summary.returns)
    yield list(tables.parties(summary))[2]


def _rates(rates: Rates, kinds: Ranking, duration_ns: int | None) -> Section:
    """Messages by kind, with means over the whole recording."""
    rows = []
    for row in kinds.rows:
        kind = row["kind"] or "unknown"
        rows.append(
            (
                kind,
                *(number(row[count]) for count in kinds.counts),
                per_second(row["messages"], duration_ns),
                per_second(max(rates.messages.get(kind, [0])), rates.width_ns),
                per_second(row["octets"], duration_ns),
                per_second(max(rates.octets.get(kind, [0])), rates.width_ns),
            )
        )
    columns = (
        "kind", "messages", "bytes", "incomplete", "messages/s", "peak messages/s", "bytes/s",
        "peak bytes/s",
    )  # fmt: skip
    notes = (
        f"Means are over the whole recording; peaks are those of intervals of {lasting(rates.width_ns)}. "
        "Bytes are those of bodies.",
    )
    return Section("Messages", columns, rows, len(columns) - 1, notes)


def _latencies(summary: Summary) -> Iterator[Section]:
    for title, latency in (
        ("Publish to confirm", summary.confirms),
        ("Deliver to acknowledgement", summary.acks),
    ):
        if latency.count or latency.unanswered or latency.unfollowed:
            yield _latency(title, latency)
            yield tables.slowest(title, latency, tables.times(summary))
    yield tables.waits(summary)


def _latency(title: str, latency: Latency) -> Section:
    counts = (latency.count, latency.negative, latency.unanswered, latency.waiting, latency.unfollowed)
    columns = ("answered", "of these refused", "without an answer", "of these at the end", "not followed")
    times = {
        "least": latency.least_ns,
        "mean": latency.mean_ns,
        **latency.percentiles,
        "most": latency.most_ns,
    }
    measured = {key: duration(value) for key, value in times.items()} if latency.count else {}
    row = (*map(number, counts), *measured.values())
    return Section(title, (*columns, *measured), [row], len(row))


def _queues(summary: Summary) -> Iterator[Section]:
    yield tables.ranked("Queues delivered from", summary.queues, ("queue", "delivered", "bytes"))
    yield from list(tables.parties(summary))[:2]
    rows: list[tuple[str, ...]] = [
        (
            name(each.queue),
            *map(number, (each.reports, each.first, each.last, each.least, each.most, each.falls)),
            *map(number, (each.published, each.delivered)),
        )
        for each in summary.depths
    ]
    columns = ("queue", "reports", "first", "last", "least", "most", "falls", "published", "delivered")
    notes = (
        "Messages ready, as queue.declare-ok, basic.get-ok and basic.get-empty report them. Published are "
        "those that name the queue over the default exchange.",
    )
    yield Section("Depth of queues", columns, rows, len(columns) - 1, notes)
    yield tables.ranked("Redelivered messages", summary.redelivered, ("queue", "messages"))


def _connections(summary: Summary) -> Iterator[Section]:
    yield tables.connections(summary.connections)
    yield tables.lives(summary, bars=False)
    at = tables.times(summary)
    rows: list[tuple[str, ...]] = [
        (
            each.kind.replace("-", " "),
            tables.where(each.file, each.flow),
            name(each.client),
            name(each.server),
            "-" if each.direction is None else DIRECTION_NAMES[each.direction],
            at(each.time_ns),
            duration(each.duration_ns),
            whole(each.text),
        )
        for each in summary.first_incidents
    ]
    columns = ("what", "where", "client", "server", "way", "at", "lasted", "why")
    yield Section("What happened to connections", columns, rows)
    yield tables.ranked("Closed", summary.closings, ("what", "by", "code", "text", "times"))
    yield tables.endings(summary.endings, at)
    yield tables.ranked("Acknowledged and refused", summary.settled, ("method", "by", "times"))
    who = ("bytes", "connections", "messages to the broker", "from the broker")
    counts = ("octets", "connections", "messages_sent", "messages_received")
    yield tables.ranked("Products", summary.products, ("broker", "client", *who), counts)
    yield tables.ranked("Users", summary.users, ("user", *who), counts)
    yield tables.ranked("Virtual hosts", summary.vhosts, ("vhost", *who), counts)


def _recording(summary: Summary) -> Iterator[Section]:
    yield tables.overview(summary)
    yield tables.faults(summary.faults)
    yield tables.problems(summary.problems, tables.times(summary))


def _short(section: Section, files: list[str]) -> Section:
    """The table with names of files without folders, or with none of them if there is but one file."""
    known = {
        f"{name(file)} #": "#" if len(files) == 1 else f"{name(os.path.basename(file))} #" for file in files
    }
    return replace(section, rows=[tuple(_shortened(cell, known) for cell in row) for row in section.rows])


def _shortened(cell: str, known: dict[str, str]) -> str:
    for prefix, short in known.items():
        rest = cell.removeprefix(prefix)
        if rest is not cell and rest.isdecimal():
            return short + rest
    return cell
