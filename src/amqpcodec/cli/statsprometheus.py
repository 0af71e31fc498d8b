"""A summary in the text format of Prometheus, as the textfile collector of its node exporter takes it.

A label without a value would be none. So the default exchange is ``(default)``, a name that is not known
``(unknown)``, and all names that are not shown are ``(others)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..stats import Latency, Party, Ranking, Summary
from .statsections import whole

_SECOND = 1_000_000_000
_OTHERS = "(others)"
_NAMED = {"exchange": "(default)"}  # what an empty name is called


class _Family:
    """A metric: a value for each set of labels.

    Args:
        name: its name, behind `amqp_`.
        kind: ``"counter"``, ``"gauge"``, ``"histogram"`` or ``"summary"``.
        about: what is measured.
    """

    def __init__(self, name: str, kind: str, about: str) -> None:
        self._name = f"amqp_{name}"
        self._head = f"# HELP {self._name} {about}\n# TYPE {self._name} {kind}\n"
        self._values: dict[str, float] = {}

    def add(self, value: float | None, labels: Mapping[str, object] | None = None, part: str = "") -> None:
        """Add a value, if there is one; names that look alike share theirs.

        Args:
            value: the value.
            labels: whose it is.
            part: end of the name, of a histogram or summary.
        """
        if value is not None:
            named = ",".join(f'{name}="{_label(name, each)}"' for name, each in (labels or {}).items())
            key = f"{self._name}{part}{{{named}}}" if named else f"{self._name}{part}"
            self._values[key] = self._values.get(key, 0) + value

    def __str__(self) -> str:
        return self._head + "".join(f"{key} {value}\n" for key, value in self._values.items())


def prometheus(summary: Summary) -> str:
    """The summary as text; metrics of which there is nothing have only their head."""
    families = (
        *_totals(summary),
        *_rankings(summary),
        *_latency(summary.confirms, "publish_confirm", "unconfirmed", "basic.publish", "the broker's answer"),
        *_latency(summary.acks, "delivery_ack", "unacknowledged", "a delivery", "the consumer's answer"),
        *_parties(summary.by_queue, "queue", "delivered", "unacknowledged", "Of a queue"),
        *_parties(summary.by_consumer, "consumer", "delivered", "unacknowledged", "Of a consumer"),
        *_consumers(summary.by_consumer),
        *_parties(summary.by_publisher, "publisher", "published", "unconfirmed", "Of a publisher"),
        *_problems(summary),
    )
    return "".join(map(str, families))


def _totals(summary: Summary) -> Iterator[_Family]:
    totals = summary.totals
    for name, kind, about, value in (
        ("capture_start_time_seconds", "gauge", "Time of the first packet.", _micro(summary.first_us)),
        ("capture_end_time_seconds", "gauge", "Time of the last packet.", _micro(summary.last_us)),
        ("connections_total", "counter", "Connections in the recording.", totals["connections"]),
        ("gaps_total", "counter", "Stretches that the recording lacks.", totals["gaps"]),
        ("missing_bytes_total", "counter", "Bytes in gaps of the recording.", totals["octets_missing"]),
    ):
        family = _Family(name, kind, about)
        family.add(value)
        yield family
    for what, name, about in (
        ("octets", "bytes_total", "Bytes on the wire"),
        ("frames", "frames_total", "Frames"),
    ):
        family = _Family(name, "counter", f"{about}, sent by clients or received by them.")
        for way in ("sent", "received"):
            family.add(totals[f"{what}_{way}"], {"direction": way})
        yield family


def _rankings(summary: Summary) -> Iterator[_Family]:
    for name, about, ranking, count in (
        ("messages_total", "Messages by the method that carries them.", summary.kinds, "messages"),
        ("message_body_bytes_total", "Bytes of bodies.", summary.kinds, "octets"),
        ("exchange_published_messages_total", "Messages published.", summary.exchanges, "published"),
        ("exchange_delivered_messages_total", "Messages delivered.", summary.exchanges, "delivered"),
        ("closes_total", "Channels, connections and consumers closed.", summary.closings, "times"),
        ("returned_messages_total", "Messages returned.", summary.returns, "messages"),
        ("faults_total", "Gaps, lost bytes and frames in error.", summary.faults, "times"),
        ("incidents_total", "What happened to connections.", summary.incidents, "times"),
    ):
        yield _ranked(_Family(name, "counter", about), ranking, count)


def _ranked(family: _Family, ranking: Ranking, count: str) -> _Family:
    for row in ranking.rows:
        family.add(row[count], {key: row[key] for key in ranking.keys})
    if ranking.others[count]:
        family.add(ranking.others[count], dict.fromkeys(ranking.keys, _OTHERS))
    return family


def _latency(latency: Latency, name: str, waits: str, begin: str, end: str) -> Iterator[_Family]:
    family = _Family(f"{name}_latency_seconds", "histogram", f"Time from {begin} to {end}.")
    passed = 0
    for upper, number in latency.histogram:
        passed += number
        family.add(passed, {"le": upper / _SECOND}, "_bucket")
    family.add(latency.count, {"le": "+Inf"}, "_bucket")
    family.add((latency.mean_ns or 0) * latency.count / _SECOND, part="_sum")
    family.add(latency.count, part="_count")
    yield family
    for kind, about, value in (
        (f"{waits}_messages", "Messages without an answer at their end.", latency.unanswered),
        (f"{name}_unfollowed_messages", "Messages that could not be followed.", latency.unfollowed),
    ):
        family = _Family(kind, "gauge", about)
        family.add(value)
        yield family


def _parties(found: list[Party], who: str, what: str, waits: str, whose: str) -> Iterator[_Family]:
    for name, kind, about, value in _OF_PARTIES:
        family = _Family(f"{who}_{name.format(what=what, waits=waits)}", kind, f"{whose}: {about}.")
        for party in found:
            family.add(value(party), _who(party))
        yield family
    family = _Family(f"{who}_latency_seconds", "summary", f"{whose}: time to the answer.")
    for party in found:
        for quantile, latency in (("0.5", party.p50_ns), ("0.99", party.p99_ns)):
            family.add(_nano(latency), {**_who(party), "quantile": quantile})
        if party.count:
            family.add((party.mean_ns or 0) * party.count / _SECOND, _who(party), "_sum")
        family.add(party.count, _who(party), "_count")
    yield family


_OF_PARTIES: tuple[tuple[str, str, str, Callable[[Party], float | None]], ...] = (
    ("{what}_messages_total", "counter", "messages", lambda party: party.messages),
    ("redelivered_messages_total", "counter", "messages delivered before", lambda party: party.redelivered),
    ("refused_messages_total", "counter", "messages refused", lambda party: party.refused),
    ("{waits}_messages", "gauge", "messages without an answer at their end", lambda party: party.unanswered),
    (
        "{waits}_messages_max",
        "gauge",
        "messages that waited for one at once",
        lambda party: party.most_waiting,
    ),
)


def _consumers(found: list[Party]) -> Iterator[_Family]:
    for name, about, value in _OF_CONSUMERS:
        family = _Family(f"consumer_{name}", "gauge", about)
        for party in found:
            family.add(value(party), _who(party))
        yield family


_OF_CONSUMERS: tuple[tuple[str, str, Callable[[Party], float | None]], ...] = (
    (
        "prefetch_messages",
        "Messages that may be unacknowledged, 0 for any number.",
        lambda party: party.prefetch,
    ),
    ("idle_seconds", "Time without an unacknowledged message.", lambda party: _nano(party.idle_ns)),
    ("longest_pause_seconds", "Longest time without a message.", lambda party: _nano(party.pause_ns)),
)


def _problems(summary: Summary) -> Iterator[_Family]:
    depths = _Family("queue_ready_messages", "gauge", "Messages ready, as the broker said last.")
    for depth in summary.depths:
        depths.add(depth.last, {"queue": depth.queue})
    yield depths
    findings = _Family("findings", "gauge", "Problems found, and notes; docs/stats.md says what they are.")
    for finding in summary.findings:
        findings.add(finding.count, {"code": finding.code, "severity": finding.severity})
    yield findings


def _who(party: Party) -> dict[str, object]:
    return dict.fromkeys(party.keys, _OTHERS) if party.others else party.keys


def _label(name: str, value: object) -> str:
    """The value of a label, as it stands between quotes."""
    if value is None:
        return "(unknown)"
    text = _NAMED.get(name, "(empty)") if value == "" else whole(value)
    return text.replace("\\", r"\\").replace('"', r"\"")


def _nano(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / _SECOND


def _micro(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1_000_000
