"""The problems in a summary, worst first, and a verdict in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sized

from .summary import SUCCESS, Finding, Latency, Ranking, Summary

SLOW_CONFIRM_NS = 500_000_000  # a 99th percentile from here on is worth a warning
SLOW_ACK_NS = 10_000_000_000
_MANY_WAIT = 10  # messages without an answer at the end are a warning from a tenth of all on
_LISTED = 3  # of what a finding names
_CAPTURE_FAULTS = ("GAP", "LOST", "FILE")
_SECOND = 1_000_000_000


def findings(summary: Summary) -> list[Finding]:
    """All findings, the worst first."""
    found = [finding for find in _FINDERS for finding in find(summary)]
    return sorted(found, key=lambda finding: _SEVERITIES.index(finding.severity))


def verdict(summary: Summary, found: Iterable[Finding]) -> str:
    """Return the verdict on the recording, in a sentence or two."""
    totals = summary.totals
    if not summary.files:
        return "No file could be read."
    if not totals["connections"]:
        return "There is no AMQP in this recording, on the ports that were looked at."
    problems = [finding for finding in found if finding.severity != "note"]
    if problems:
        first, *more = [finding.brief for finding in problems[:3]]
        listed = ", ".join((first, *more))
        rest = len(problems) - 1 - len(more)
        left_out = f", and {_count(rest, 'more problem')}" if rest else ""
        return f"{_count(len(problems), 'problem')} found: {listed}{left_out}."
    messages = totals["messages_sent"] + totals["messages_received"]
    if not messages:
        seen = _count(totals["connections"], "connection")
        return f"Nothing wrong was found, and nothing happened: {seen} without a single message."
    return f"Nothing wrong was found: {_traffic(summary)}."


def lasting(nanoseconds: int) -> str:
    """A duration in three digits of the unit that suits it."""
    if nanoseconds < 1_000_000:
        return f"{nanoseconds / 1000:.0f} µs"
    if nanoseconds < _SECOND:
        return f"{nanoseconds / 1_000_000:.3g} ms"
    seconds = nanoseconds / _SECOND
    for unit, width, most in (("s", 1, 180), ("min", 60, 180), ("h", 3600, 72)):
        if seconds < most * width:
            return f"{seconds / width:.3g} {unit}"
    return f"{seconds / 86400:,.0f} days"


def _traffic(summary: Summary) -> str:
    """Who carried how much, published and delivered apart."""
    published, delivered = summary.carried("publish"), summary.carried("deliver", "get-ok")
    span = summary.duration_ns
    during = f" in {lasting(span)}" if span else ""
    return (
        f"{_count(summary.totals['connections'], 'connection')}, "
        f"{_count(published, 'message')} published and {delivered:,} delivered{during}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {_for(number, noun, noun + 's')}"


def _for(number: int, one: str, many: str) -> str:
    """The word that goes with a number."""
    return one if number == 1 else many


def _total(ranking: Ranking, count: str) -> int:
    """The sum of a count over all keys."""
    shown: int = sum(row[count] for row in ranking.rows)
    return shown + ranking.others[count]


def _faults(summary: Summary) -> Iterator[Finding]:
    by_code = {row["code"]: row for row in summary.faults.rows}
    section = "Gaps and errors"
    wrong = {code: row["times"] for code, row in by_code.items() if code not in _CAPTURE_FAULTS}
    if wrong:
        times = sum(wrong.values())
        listed = ", ".join(f"{code} {number:,}" for code, number in wrong.items())
        brief = _count(times, "frame") + " in error"
        text = f"{brief}, against the protocol: {listed}."
        yield Finding("frames-in-error", "error", section, times, brief, text)
    row = by_code.get("GAP", {"times": 0})
    if row["times"] > _incidents(summary, "times").get("one-sided", 0):  # these are said elsewhere
        brief = _count(row["times"], "gap") + " in the recording"
        text = (
            f"The recording lacks {_count(row['octets'], 'byte')} in {_count(row['times'], 'gap')}: numbers "
            "of messages are too low, and some answers are not followed."
        )
        yield Finding("gaps", "warning", section, row["times"], brief, text)
    if "LOST" in by_code:
        row = by_code["LOST"]
        brief = (
            _count(row["octets"], "byte") + f" that {_for(row['octets'], 'belongs', 'belong')} to no frame"
        )
        cut = summary.totals["octets_cut_off"]
        why = "damaged, encrypted, or not AMQP"
        if cut == row["octets"]:
            why = "a gap cuts their frames"
        elif cut:
            why = f"a gap cuts the frames of {cut:,}; the others are {why}"
        text = f"{brief}, in {_count(row['times'], 'place')}: {why}."
        yield Finding("lost", "warning", section, row["octets"], brief, text)
    dropped = summary.totals["packets_dropped"]
    if dropped:
        brief = _count(dropped, "packet") + " dropped by the recorder"
        text = f"{brief}, as it says itself: it was too slow, so that octets are missing."
        yield Finding("dropped", "warning", section, dropped, brief, text)
    if "FILE" in by_code:
        times = by_code["FILE"]["times"]
        brief = _count(times, "fault") + " of the file"
        what = ": it is damaged or was cut short" * (not dropped)
        yield Finding("file", "warning", section, times, brief, f"{brief}{what}.")


def _closings(summary: Summary) -> Iterator[Finding]:
    failed = [row for row in summary.closings.rows if row["reply_code"] not in SUCCESS]
    if failed:
        times = sum(row["times"] for row in failed)
        scopes: Counter[str] = Counter()
        for row in failed:
            scopes[row["scope"]] += row["times"]
        who = " and ".join(_count(number, scope) for scope, number in sorted(scopes.items(), reverse=True))
        who += " closed by an error"
        reasons: Counter[str] = Counter()
        for row in failed:
            reasons[_reason(row)] += row["times"]
        listed = "; ".join(f"{reason}, {_times(number)}" for reason, number in reasons.most_common(_LISTED))
        text = f"{who}: {listed}{_others(reasons, '; ')}."
        yield Finding("closed-by-error", "error", "Closed", times, who, text)
    cancelled = sum(row["times"] for row in summary.closings.rows if row["scope"] == "consumer")
    if cancelled:
        brief = _count(cancelled, "consumer") + " cancelled by the broker"
        whose = _for(cancelled, "its", "their")
        text = f"{brief}, which it does when {whose} queue goes away."
        yield Finding("cancelled", "warning", "Closed", cancelled, brief, text)


def _reason(row: dict[str, object]) -> str:
    """Who closed with which code."""
    return f"{_reply(row)} by the {row['by']}"


def _reply(row: dict[str, object]) -> str:
    """A reply code, and what the text says before it becomes particular."""
    text = str(row["reply_text"] or "").partition(" - ")[0]
    return " ".join(filter(None, (str(row["reply_code"] or ""), text))) or "without a reason"


def _others(every: Sized, between: str = ", ") -> str:
    """Say behind the first of a list that there are others."""
    return f"{between}and others" if len(every) > _LISTED else ""


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def _refusals(summary: Summary) -> Iterator[Finding]:
    returned = _total(summary.returns, "messages")
    if returned:
        brief = _count(returned, "message") + " returned"
        reasons = list(dict.fromkeys(map(_reply, summary.returns.rows)))
        why = ", ".join(reasons[:_LISTED]) + _others(reasons)
        what = _for(returned, "it", "them")
        text = f"{brief} to the publisher, because no queue or consumer took {what}: {why}."
        yield Finding("returned", "warning", "Returned messages", returned, brief, text)
    for by, latency, code, severity, section, brief in _REFUSALS:
        refusals = (row for row in summary.settled.rows if row["by"] == by and row["method"] != "basic.ack")
        refused = sum(row["times"] for row in refusals)
        if refused:
            brief = f"{_count(refused, 'refusal')} by {brief}"
            different = getattr(summary, latency).negative_messages
            text = f"{brief}, of {_count(different, 'message')} whose answer could be followed."
            yield Finding(code, severity, section, refused, brief, text)
    again = _total(summary.redelivered, "messages")
    if again:
        brief = f"{again:,} {_for(again, 'redelivery', 'redeliveries')}"
        what = _for(again, "this message was", "these messages were")
        text = f"{brief}: {what} delivered before, and not acknowledged."
        yield Finding("redelivered", "warning", "Redelivered messages", again, brief, text)


_REFUSALS = (
    ("server", "confirms", "publish-refused", "error", "Publish to confirm", "the broker (basic.nack)"),
    (
        "client", "acks", "rejected", "warning", "Deliver to acknowledgement",
        "consumers (basic.nack, basic.reject)",
    ),
)  # fmt: skip


def _answers(summary: Summary) -> Iterator[Finding]:
    acks, confirms = summary.acks, summary.confirms
    yield from _unanswered(acks, "unacknowledged", "delivery", "deliveries", "an acknowledgement")
    yield from _unanswered(confirms, "unconfirmed", "message", "messages", "a confirm")
    for latency, most, code, section, what in (
        (confirms, SLOW_CONFIRM_NS, "slow-confirms", "Publish to confirm", "confirms"),
        (acks, SLOW_ACK_NS, "slow-acks", "Deliver to acknowledgement", "acknowledgements"),
    ):
        slow = latency.percentiles.get("p99", 0)
        if slow >= most:
            brief = f"slow {what} (p99 {lasting(slow)})"
            listed = ", ".join(f"{name} {lasting(value)}" for name, value in latency.percentiles.items())
            text = f"Slow {what}: {listed}, the slowest {lasting(latency.most_ns or 0)}."
            yield Finding(code, "warning", section, latency.count, brief, text)
    dropped = sum(wait.dropped for wait in summary.waits)
    if dropped:
        brief = f"{dropped:,} {_for(dropped, 'delivery', 'deliveries')} of publishes that may be forgotten"
        text = f"{brief}: too many messages were published meanwhile, so how long they waited is not known."
        yield Finding("waits-dropped", "note", "Publish to delivery", dropped, brief, text)
    unfollowed = acks.unfollowed + confirms.unfollowed
    if unfollowed:
        brief = _count(unfollowed, "message") + " not followed"
        text = (
            f"{_count(unfollowed, 'message')} could not be followed to an answer, and "
            f"{_for(unfollowed, 'is', 'are')} in no latency."
        )
        section = "Publish to confirm" if confirms.unfollowed else "Deliver to acknowledgement"
        yield Finding("unfollowed", "note", section, unfollowed, brief, text)


def _unanswered(latency: Latency, code: str, one: str, many: str, answer: str) -> Iterator[Finding]:
    """Messages without an answer; those that wait when the recording ends are usual if they are few."""
    section = "Deliver to acknowledgement" if code == "unacknowledged" else "Publish to confirm"
    total, waiting = latency.count + latency.unanswered, latency.waiting
    never = latency.unanswered - waiting
    of_all = f"{total:,} {_for(total, one, many)}"
    if never:
        brief = f"{never:,} {code} {_for(never, one, many)}"
        whose = _for(never, "its", "their")
        text = f"{never:,} of {of_all} had not got {answer} when {whose} channel or connection ended."
        yield Finding(code, "warning", section, never, brief, text)
    if waiting:
        brief = f"{waiting:,} {code} {_for(waiting, one, many)} at the end"
        text = f"{waiting:,} of {of_all} waited for {answer} when the recording ended."
        severity = "warning" if waiting * _MANY_WAIT >= total else "note"
        yield Finding(f"{code}-at-the-end", severity, section, waiting, brief, text)


def _connections(summary: Summary) -> Iterator[Finding]:
    times, lasted = _incidents(summary, "times"), _incidents(summary, "duration_ns")
    section = "What happened to connections"
    for kind, severity, noun, brief, more in _INCIDENTS:
        if kind in times:
            brief = f"{_count(times[kind], noun)} {brief}"
            text = f"{brief}{more.format(lasting(lasted[kind]))}."
            yield Finding(kind, severity, section, times[kind], brief, text)


def _incidents(summary: Summary, count: str) -> dict[str, int]:
    """Return a count of each kind of incident."""
    return {row["kind"]: row[count] for row in summary.incidents.rows}


_INCIDENTS = (
    ("not-opened", "error", "connection", "never opened",
     ": the handshake began, and connection.open-ok did not come"),
    ("blocked", "error", "block", "of publishers by the broker",
     ", for {} in all: it has too little memory or disk"),
    ("ended-without-close", "warning", "connection", "ended without connection.close",
     ": a crash, a kill, or a lost network"),
    ("silent", "warning", "silence", "of more than two heartbeats",
     ", {} in all: a peer hung, or the network did"),
    ("one-sided", "warning", "connection", "recorded in one direction only",
     ": the other was acknowledged and is missing, so nothing is said about it, such as answers"),
    ("recorded-twice", "warning", "connection", "recorded twice",
     " with other addresses or in another tunnel: messages count twice, unless --copies drop"),
    ("left-out", "note", "connection", "recorded twice and left out", ", by --copies drop"),
    ("open-at-the-end", "note", "connection", "without connection.close at the end",
     " of the recording: perhaps still open"),
)  # fmt: skip


def _queues(summary: Summary) -> Iterator[Finding]:
    growing = [depth for depth in summary.depths if depth.only_grows]
    if growing:
        brief = _count(len(growing), "queue") + " that only grew"
        listed = ", ".join(f"{each.queue} from {each.first:,} to {each.last:,}" for each in growing[:_LISTED])
        text = f"{brief}: {listed} messages{_others(growing)}."
        yield Finding("growing-queues", "warning", "Depth of queues", len(growing), brief, text)
    idle = [depth for depth in summary.depths if depth.published and not depth.delivered]
    if idle and "one-sided" not in _incidents(summary, "times"):
        brief = _count(len(idle), "queue") + " without a delivery"
        listed = ", ".join(f"{each.queue} ({each.published:,} published)" for each in idle[:_LISTED])
        listed += _others(idle)
        where = _for(len(idle), "it", "them")
        text = f"{brief} in this recording, though messages were published to {where}: {listed}."
        yield Finding("no-delivery", "note", "Depth of queues", len(idle), brief, text)


_SEVERITIES = ("error", "warning", "note")
_FINDERS = (_closings, _connections, _faults, _refusals, _answers, _queues)
