"""A summary as titled tables of text: what the terminal and the HTML page both show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ..capture import DIRECTION_NAMES
from ..stats import Ending, Latency, Life, Party, Problem, Publishers, Ranking, Rates, Slow, Summary
from ..stats.findings import lasting
from ..stats.lives import CHANNELS
from .rendering import clock, escaped

_LONGEST = 60
_SECOND = 1_000_000_000
_LONG = 180 * _SECOND  # from here on in minutes, hours or days


@dataclass(frozen=True)
class Section:
    """One table.

    Attributes:
        title: what it is about.
        columns: their names.
        rows: text for each column, free of control characters.
        numbers: how many of the columns, counted from the right, are numbers.
        notes: sentences below it.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    numbers: int = 0
    notes: tuple[str, ...] = ()


def sections(summary: Summary) -> list[Section]:
    """All tables that have something in them, in the order in which they are to be read."""
    at = times(summary)
    made = [
        findings(summary),
        *parties(summary),
        exchanges(summary, summary.exchanges, _TRAFFIC),
        overview(summary),
        connections(summary.connections),
        ranked("Products", summary.products, ("broker", "client", *_WHO_TITLES), _WHO),
        ranked("Users", summary.users, ("user", *_WHO_TITLES), _WHO),
        ranked("Virtual hosts", summary.vhosts, ("vhost", *_WHO_TITLES), _WHO),
        ranked("Messages", summary.kinds, ("kind", "messages", "bytes", "incomplete")),
        ranked("Routing keys", summary.routing_keys, ("exchange", "routing key", *_TRAFFIC)),
        ranked("Queues delivered from", summary.queues, ("queue", "messages", "bytes")),
        _rates(summary.rates),
        *_latency("Publish to confirm", summary.confirms, at),
        *_latency("Deliver to acknowledgement", summary.acks, at),
        waits(summary),
        lives(summary),
        ranked("Closed", summary.closings, ("what", "by", "code", "text", "times")),
        endings(summary.endings, at),
        returned(summary.returns),
        faults(summary.faults),
        problems(summary.problems, at),
    ]
    return [section for section in made if section.rows]


_WHO = ("octets", "connections", "messages")
_WHO_TITLES = ("bytes", "connections", "messages")
_TRAFFIC = ("messages", "bytes", "published", "bytes published", "delivered", "bytes delivered")


def number(value: int) -> str:
    """A number for people."""
    return f"{value:,}"


def duration(nanoseconds: int | None) -> str:
    """A duration in the unit that suits it."""
    if nanoseconds is None:
        return "-"
    if nanoseconds < 1_000_000:
        return f"{nanoseconds / 1000:.1f} µs"
    if nanoseconds < _SECOND:
        return f"{nanoseconds / 1_000_000:.3f} ms"
    if nanoseconds < _LONG:
        return f"{nanoseconds / _SECOND:.3f} s"
    return lasting(nanoseconds)


def name(value: object) -> str:
    """A name from the wire: in short, and without control characters; ``-`` where there is none."""
    text = whole(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def whole(value: object) -> str:
    """Return a text from the wire as it is, but without control characters; ``-`` where there is none."""
    return "-" if value is None else escaped(str(value)) or "(empty)"


def exchange(value: object) -> str:
    """The name of an exchange; the default one has none."""
    return "(default)" if value == "" else name(value)


def key_text(key: str, value: object) -> str:
    """A part of a key of a ranking, which is an exchange where it is called that."""
    if key == "reply_text":
        return whole(value)
    return exchange(value) if key == "exchange" else name(value)


def rate(per_second: float) -> str:
    """A rate, of which three digits are shown at least."""
    return f"{per_second:,.1f}" if per_second >= 10 or not per_second else f"{per_second:.3g}"


def per_second(count: int, duration_ns: int | None) -> str:
    """A count in a time as a rate; ``-`` without a duration."""
    return rate(count * _SECOND / duration_ns) if duration_ns else "-"


def findings(summary: Summary) -> Section:
    """The verdict, and the problems behind it."""
    found = [(finding.severity, finding.text) for finding in summary.findings]
    return Section("Findings", ("", "what"), [("verdict", summary.verdict), *found])


def parties(summary: Summary) -> Iterator[Section]:
    """Return the tables of what became of messages by queue, by consumer and by publisher."""
    latencies = ("p50", "p99", "most")
    delivered = ("delivered", "messages/s", *latencies, "unacknowledged", "most at once")
    counted = ("redelivered", "refused", "not followed")
    waited = ("waited p50", "waited p99")
    yield _parties("Queues", summary.by_queue, (*delivered, *counted, *waited))
    of_consumers = (*delivered, "prefetch", "idle", "longest pause", *counted)
    yield _parties("Consumers", summary.by_consumer, of_consumers, (_CONSUMER_NOTE,))
    published = ("published", "messages/s", *latencies, "unconfirmed", "most at once")
    yield _parties("Publishers", summary.by_publisher, (*published, *counted[1:], *_SIZES))


_SIZES = ("bytes p50", "bytes p99", "largest")
_CONSUMER_NOTE = (
    "Prefetch is how many messages may be unacknowledged, by the last basic.qos of the channel. A consumer "
    "is idle while none is."
)


def _parties(title: str, found: list[Party], counts: tuple[str, ...], notes: tuple[str, ...] = ()) -> Section:
    rows = [(*_who(party), *map(_of_party(party).__getitem__, counts)) for party in found]
    keys = [_KEY_TITLES.get(key, key) for key in _key_names(found)]
    return Section(title, (*keys, *counts), rows, len(counts), notes if found else ())


_KEY_TITLES = {"consumer_tag": "consumer"}


def _key_names(found: list[Party]) -> Iterator[str]:
    """The names of columns that say who it is; that of a client's connection stands behind its address."""
    for key in found[0].keys if found else ():
        yield key
        if key == "client":
            yield "name"


def _who(party: Party) -> list[str]:
    known = {**party.keys, "name": party.name}
    cells = [key_text(key, known[key]) for key in _key_names([party])]
    if party.others:
        cells[0] = _others(party.others)
    return cells


def _of_party(party: Party) -> dict[str, str]:
    """Text by title of column."""
    return {
        **dict.fromkeys(("delivered", "published"), number(party.messages)),
        "messages/s": "-" if party.per_second is None else rate(party.per_second),
        "redelivered": number(party.redelivered),
        "refused": number(party.refused),
        **dict.fromkeys(("unacknowledged", "unconfirmed"), number(party.unanswered)),
        "most at once": "-" if party.most_waiting is None else number(party.most_waiting),
        "prefetch": "-"
        if party.prefetch is None
        else number(party.prefetch)
        if party.prefetch
        else "no limit",
        "idle": _roughly(party.idle_ns),
        "longest pause": _roughly(party.pause_ns),
        "not followed": number(party.unfollowed),
        "p50": _roughly(party.p50_ns),
        "p99": _roughly(party.p99_ns),
        "most": _roughly(party.most_ns),
        "waited p50": _roughly(party.wait_p50_ns),
        "waited p99": _roughly(party.wait_p99_ns),
        **dict(zip(_SIZES, _sizes(party), strict=True)),
    }


def _sizes(found: Party | Publishers | None) -> list[str]:
    """Return the sizes of bodies."""
    sizes = (None,) * 3 if found is None else (found.size_p50, found.size_p99, found.size_most)
    return ["-" if size is None else number(size) for size in sizes]


def waits(summary: Summary) -> Section:
    """How long messages waited from their publish to their first delivery."""
    rows = [
        (
            _others(wait.others) if wait.others else name(wait.queue),
            exchange(wait.exchange),
            name(wait.routing_key),
            *map(number, (wait.messages, wait.exact, wait.by_id, wait.by_content)),
            number(wait.messages - wait.exact - wait.by_id - wait.by_content),
            *map(_roughly, (wait.p50_ns, wait.p99_ns, wait.most_ns)),
        )
        for wait in summary.waits
    ]
    columns = (
        "queue", "exchange", "routing key", "delivered", "exact", "by id", "by content", "not known", "p50",
        "p99", "most",
    )  # fmt: skip
    return Section("Publish to delivery", columns, rows if _are_joined(summary) else [], 8, (_WAIT_NOTE,))


_WAIT_NOTE = (
    "Messages are joined to their publish by the order of a queue (exact), by an id, or by their content."
)


def _are_joined(summary: Summary) -> bool:
    """Return whether there is anything to say on waits."""
    return any(wait.exact or wait.by_id or wait.by_content or wait.dropped for wait in summary.waits)


def _roughly(nanoseconds: int | None) -> str:
    """A duration in three digits."""
    return "-" if nanoseconds is None else lasting(nanoseconds)


def exchanges(
    summary: Summary, ranking: Ranking, titles: tuple[str, ...], counts: tuple[str, ...] = ()
) -> Section:
    """The table of exchanges, with who publishes to each.

    Args:
        summary: says who publishes.
        ranking: the exchanges.
        titles, counts: the columns with numbers, and the counts in them.
    """
    table = ranked("Exchanges", ranking, ("exchange", *titles), counts)
    known = {each.exchange: each for each in summary.published_by}
    found = [known.get(row["exchange"]) for row in ranking.rows]
    found += [None] * (len(table.rows) - len(found))
    rows = [
        (row[0], _clients(each), *row[1:], *_sizes(each)) for row, each in zip(table.rows, found, strict=True)
    ]
    columns = ("exchange", "published by", *titles, *_SIZES)
    return replace(table, columns=columns, rows=rows, numbers=table.numbers + len(_SIZES))


def _clients(publishers: Publishers | None) -> str:
    if publishers is None:
        return "-"
    shown = [
        f"{name(each.client)}{f' ({name(each.name)})' if each.name else ''} {number(each.messages)}"
        for each in publishers.clients
    ]
    return ", ".join([*shown, *[_others(publishers.others)] * (publishers.others > 0)]) or "-"


def overview(summary: Summary) -> Section:
    """Files, times and totals."""
    totals = summary.totals
    rows: list[tuple[str, ...]] = [("files", number(len(summary.files)))]
    first, last = summary.first_us, summary.last_us
    if first is not None and last is not None:
        rows += [
            ("from", moment(first)),
            ("to", moment(last)),
            ("duration", duration((last - first) * 1000)),
        ]
    rows.append(("connections", number(totals["connections"])))
    for title, what in (("bytes", "octets"), ("frames", "frames"), ("messages", "messages")):
        rows += [(f"{title} {way}", number(totals[f"{what}_{way}"])) for way in ("sent", "received")]
    rows += [
        ("gaps", number(totals["gaps"])),
        ("bytes missing", number(totals["octets_missing"])),
        ("frames in error", number(totals["errors"])),
        *[("packets dropped by the recorder", number(totals["packets_dropped"]))]
        * (totals["packets_dropped"] > 0),
    ]
    note = "Sent is from clients to servers. Bytes of messages below are those of bodies."
    return Section("Overview", ("", "all"), rows, 1, (note,))


Times = Callable[[int | None], str]


def times(summary: Summary) -> Times:
    """Return what shows times: of day, and with the date where the recording has several."""
    days = {time // 86_400_000_000 for time in (summary.first_us, summary.last_us) if time is not None}
    return clock if len(days) < 2 else _dated


def _dated(time_ns: int | None) -> str:
    return clock(None) if time_ns is None else moment(time_ns // 1000)


def moment(microseconds: int) -> str:
    """A date and time of day in UTC."""
    try:
        return (
            f"{datetime.fromtimestamp(microseconds // 1_000_000, UTC):%Y-%m-%d} {clock(microseconds * 1000)}"
        )
    except (OverflowError, OSError, ValueError):
        return f"{microseconds} µs"


def connections(ranking: Ranking) -> Section:
    """The connections with the most octets."""
    rows = [
        (
            where(row["file"], row["flow"]),
            name(row["client"]),
            name(row["server"]),
            name(row["connection_name"] or row["client_product"]),
            name(row["user"]),
            name(row["vhost"]),
            _closed(row),
            *(number(row[count]) for count in _FLOW_COUNTS),
        )
        for row in ranking.rows
    ]
    if ranking.distinct > len(rows):
        left_out = (number(ranking.others[count]) for count in _FLOW_COUNTS)
        rows.append((_others(ranking.distinct - len(rows)), *["-"] * 6, *left_out))
    columns = ("where", "client", "server", "name", "user", "vhost", "closed", *_FLOW_TITLES)
    return Section("Connections", columns, rows, len(_FLOW_COUNTS))


_FLOW_COUNTS = ("octets_sent", "octets_received", "messages_sent", "messages_received", "gaps", "errors")
_FLOW_TITLES = (
    "bytes sent", "bytes received", "messages sent", "messages received", "gaps", "errors",
)  # fmt: skip


def lives(summary: Summary, bars: bool = True) -> Section:
    """Connections and channels from their beginning to their end; with bars where no chart stands above."""
    rows: list[tuple[str, ...]] = []
    at = times(summary)
    for life in summary.lives:
        rows.append(
            (
                where(life.file, life.flow),
                name(life.client),
                name(life.name),
                str(life.channel) if life.channel else _channels(life.channels),
                *[bar(life, summary)] * bars,
                at(life.begin_ns),
                duration(life.duration_ns),
                ended(life),
            )
        )
    columns = ("where", "client", "name", "channel", *["over time"] * bars, "from", "lasted", "ended")
    note = f"Up to {CHANNELS} channels of each connection are shown: the first, and those closed by an error."
    left = summary.totals["connections"] - sum(not life.channel for life in summary.lives)
    notes = note, *[f"Connections that are not shown: {number(left)}."] * (left > 0)
    return Section("Connections and channels over time", columns, rows, notes=notes if rows else ())


def _channels(count: int) -> str:
    return "1 channel" if count == 1 else f"{number(count)} channels"


def ended(life: Life) -> str:
    """Return what ended a connection or channel."""
    if life.by is not None:
        return f"{life.by} {life.reply_code} {whole(life.reply_text)}"
    return _ENDED[life.ended]


_ENDED = {
    "with-connection": "with its connection",
    "broken": "without connection.close",
    "recording": "open at the end of the recording",
    "closed": "connection.close",  # which the recording lacks
    "unknown": "unknown",
}


def bar(life: Life, summary: Summary, width: int = 40) -> str:
    """The time of a life within that of the recording."""
    first, last = summary.first_us, summary.last_us
    if first is None or last is None or life.begin_ns is None or life.end_ns is None:
        return "-"
    span = max(last - first, 1) * 1000
    begin, end = ((time - first * 1000) * width // span for time in (life.begin_ns, life.end_ns))
    begin = min(max(begin, 0), width - 1)
    return " " * begin + _BARS[-1] * max(min(end + 1, width) - begin, 1)


def where(file: str, flow: int | None) -> str:
    """A connection: its file and number."""
    return name(file) if flow is None else f"{name(file)} #{flow}"


def _others(left_out: int) -> str:
    """The first cell of the row with the sums of keys that are not shown."""
    return "1 other" if left_out == 1 else f"{number(left_out)} others"


def _closed(row: dict[str, Any]) -> str:
    by, code = row["closed_by"], row["close_code"]
    return "-" if by is None else f"{by} {code} {whole(row['close_text'])}"


def ranked(title: str, ranking: Ranking, columns: tuple[str, ...], counts: tuple[str, ...] = ()) -> Section:
    """A table of the keys and of some of the counts, of all if none are named."""
    counts = counts or ranking.counts
    rows = [
        (*(key_text(key, row[key]) for key in ranking.keys), *(number(row[count]) for count in counts))
        for row in ranking.rows
    ]
    left_out = ranking.distinct - len(rows)
    if any(ranking.others.values()):
        blanks = ["-"] * (len(ranking.keys) - 1)
        others = (number(ranking.others[count]) for count in counts)
        rows.append((_others(left_out) if left_out else "others", *blanks, *others))
    notes: tuple[str, ...] = ()
    first = ranking.counts[0]
    if ranking.uncounted[first]:
        uncounted = f"Of the {first}, {number(ranking.uncounted[first])} came with names beyond the first"
        notes = (f"{uncounted} {number(ranking.distinct)}. The sum of the others has them.",)
    return Section(title, columns, rows, len(counts), notes)


def _rates(rates: Rates) -> Section:
    rows: list[tuple[str, ...]] = []
    for kind, messages in rates.messages.items():
        octets = rates.octets[kind]
        span = len(messages) * rates.width_ns
        rows.append(
            (
                kind,
                sparkline(messages),
                *(
                    per_second(count, width)
                    for count, width in (
                        (sum(messages), span),
                        (max(messages), rates.width_ns),
                        (sum(octets), span),
                        (max(octets), rates.width_ns),
                    )
                ),
            )
        )
    columns = (
        "kind", "messages over time", "messages/s", "peak messages/s", "bytes/s", "peak bytes/s",
    )  # fmt: skip
    return Section(
        "Rates", columns, rows, 4, (f"The peak is that of intervals of {duration(rates.width_ns)}.",)
    )


def sparkline(values: Sequence[int], width: int = 40, together: Callable[[Sequence[int]], int] = sum) -> str:
    """Values over time as a line of bars, several of them added up or otherwise put together."""
    step = -(-len(values) // width)
    drawn = [together(values[at : at + step]) for at in range(0, len(values), step)]
    most = max(drawn) or 1
    return "".join(_BARS[-(-value * (len(_BARS) - 1) // most)] for value in drawn)


_BARS = " ▁▂▃▄▅▆▇█"


def _latency(title: str, latency: Latency, at: Times) -> Iterator[Section]:
    if not (latency.count or latency.unanswered or latency.unfollowed):
        return
    rows: list[tuple[str, ...]] = [
        ("answered", number(latency.count)),
        ("of these by nack or reject", number(latency.negative)),
        ("without an answer", number(latency.unanswered)),
        ("not followed", number(latency.unfollowed)),
        ("least", duration(latency.least_ns)),
        ("mean", duration(latency.mean_ns)),
        *((percentile, duration(value)) for percentile, value in latency.percentiles.items()),
        ("most", duration(latency.most_ns)),
    ]
    notes: tuple[str, ...] = ()
    if latency.count:
        drawn = sparkline([each or 0 for each in latency.over_time.p99_ns], together=max)
        notes = (f"p99 over time  {drawn}",)
    yield Section(title, ("", "all"), rows, 1, notes)
    yield slowest(title, latency, at)


def slowest(title: str, latency: Latency, at: Times) -> Section:
    """The slowest answers."""
    columns = (
        "took", "outcome", "where", "channel", "tag", "at", "packets", "exchange", "routing key", "queue",
        "consumer",
    )  # fmt: skip
    return Section(f"{title}: slowest", columns, [_slow(slow, at) for slow in latency.slowest])


def _slow(slow: Slow, at: Times) -> tuple[str, ...]:
    return (
        duration(slow.latency_ns),
        slow.outcome,
        where(slow.file, slow.flow),
        str(slow.channel),
        str(slow.tag),
        at(slow.time_ns),
        f"{slow.packet} to {slow.answer_packet}",
        exchange(slow.exchange),
        name(slow.routing_key),
        name(slow.queue),
        name(slow.consumer_tag),
    )


def returned(ranking: Ranking) -> Section:
    """Messages returned, by reason and destination."""
    columns = ("code", "text", "exchange", "routing key", "messages")
    return ranked("Returned messages", ranking, columns)


def faults(ranking: Ranking) -> Section:
    """Rows of the table `errors` by code."""
    return ranked("Gaps and errors", ranking, ("code", "times", "bytes"))


def endings(endings: list[Ending], at: Times) -> Section:
    """Closes by an error, each with the methods before it."""
    rows: list[tuple[str, ...]] = []
    for ending in endings:
        place = where(ending.file, ending.flow)
        for step in ending.before:
            about = " ".join(f"{key}={name(value)}" for key, value in step.about.items())
            way = DIRECTION_NAMES[step.direction]
            rows.append((place, at(step.time_ns), way, str(step.channel), step.name, about))
        way = DIRECTION_NAMES[ending.by == "server"]
        why = f"{ending.reply_code} {whole(ending.reply_text)}"
        cause = f" ({ending.cause})" if ending.cause else ""
        close = f"{ending.scope}.close"
        rows.append((place, at(ending.time_ns), way, str(ending.channel), close, why + cause))
    columns = ("where", "at", "way", "channel", "method", "what")
    return Section("Closed by an error, and what came before", columns, rows)


def problems(problems: list[Problem], at: Times) -> Section:
    """The first rows of the table `errors`."""
    rows: list[tuple[str, ...]] = []
    for problem in problems:
        way = "-" if problem.direction is None else DIRECTION_NAMES[problem.direction]
        rows.append(
            (
                problem.code,
                where(problem.file, problem.flow),
                way,
                at(problem.time_ns),
                name(problem.packet),
                name(problem.offset),
                name(problem.length),
                whole(problem.message),
            )
        )
    columns = ("code", "where", "way", "at", "packet", "offset", "bytes", "message")
    return Section("First gaps and errors", columns, rows)
