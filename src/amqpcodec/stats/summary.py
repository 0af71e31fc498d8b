"""The summary of captures: ordinary values, which can be printed or written as JSON.

Times are integer nanoseconds since 1970-01-01 UTC, durations integer nanoseconds. Octets of messages are
those of the bodies of complete messages. Text from the wire is as in the tables of `amqpcodec.arrow`, not
escaped.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Ranking:
    """The keys with the largest counts, and the counts of all others together.

    Attributes:
        keys: names of the parts of a key.
        counts: names of the counts.
        rows: the first ones, largest first, each a key's parts and its counts by name.
        others: the counts of all other keys together, by name.
        distinct: number of keys that were counted separately.
        uncounted: the part of `others` that belongs to later keys, which are not counted separately. If it is
            not 0, one of these may have larger counts than those in `rows`.
    """

    keys: tuple[str, ...]
    counts: tuple[str, ...]
    rows: list[dict[str, Any]]
    others: dict[str, int]
    distinct: int
    uncounted: dict[str, int]


@dataclass(frozen=True)
class Slow:
    """One of the slowest answers, and where it is.

    Attributes:
        file, flow, channel, tag: of the message; `tag` is the sequence number or delivery tag.
        packet, time_ns: of the frame of basic.publish, basic.deliver or basic.get-ok.
        answer_packet: of the answer.
        latency_ns: between the two.
        answer: name of the method that answered.
        exchange, routing_key: of the message.
    """

    file: str
    flow: int
    channel: int
    tag: int
    packet: int
    time_ns: int
    answer_packet: int
    latency_ns: int
    answer: str
    exchange: str | None
    routing_key: str | None


@dataclass(frozen=True)
class Latency:
    """Latencies of answers.

    Attributes:
        count: messages with an answer.
        unanswered: messages without an answer until their channel, connection or file ended.
        unfollowed: messages not followed, because too many waited at once or octets before were missing.
        negative: answered by basic.nack or basic.reject; part of `count`.
        mean_ns, least_ns, most_ns: exact; None without answers.
        percentiles: by name, at most 0.8 % too large.
        histogram: pairs of the upper end of a class in nanoseconds and the number of its answers.
        slowest: the slowest answers, slowest first.
    """

    count: int
    unanswered: int
    unfollowed: int
    negative: int
    mean_ns: int | None
    least_ns: int | None
    most_ns: int | None
    percentiles: dict[str, int]
    histogram: list[tuple[int, int]]
    slowest: list[Slow]


@dataclass(frozen=True)
class Rates:
    """Messages over time.

    Attributes:
        start_ns: when the first interval begins; None if no message has a time.
        width_ns: duration of an interval.
        messages: messages that began in each interval, by kind.
        octets: the octets of their bodies, by kind.
    """

    start_ns: int | None
    width_ns: int
    messages: dict[str, list[int]]
    octets: dict[str, list[int]]


@dataclass(frozen=True)
class Step:
    """A method before the end of a channel or connection.

    Attributes:
        time_ns, packet: of the method; None for a stream.
        direction: 0 from the client, 1 from the server.
        channel: its channel.
        name: its name.
        about: the names in its arguments, such as queue or exchange.
    """

    time_ns: int | None
    packet: int | None
    direction: int
    channel: int
    name: str
    about: dict[str, str]


@dataclass(frozen=True)
class Ending:
    """A channel or connection closed with a reply code other than success.

    Attributes:
        file, flow, packet, time_ns: of the closing method.
        scope: ``"channel"`` or ``"connection"``.
        channel: the channel; 0 for a connection.
        by: ``"client"`` or ``"server"``.
        reply_code, reply_text: of the closing method.
        cause: name of the method that failed, or its ids; None if the closing method names none.
        before: the methods before it on this channel (for a connection: on any), in order.
    """

    file: str
    flow: int | None
    packet: int | None
    time_ns: int | None
    scope: str
    channel: int
    by: str
    reply_code: int | None
    reply_text: str | None
    cause: str | None
    before: list[Step]


@dataclass(frozen=True)
class Problem:
    """A row of the table `errors`: a gap, lost octets, a frame in error, a fault of a file."""

    file: str
    code: str
    flow: int | None
    direction: int | None
    offset: int | None
    length: int | None
    packet: int | None
    time_ns: int | None
    message: str | None


@dataclass(frozen=True)
class Summary:
    """The contents of captures.

    Attributes:
        files: their names, in the order in which they were read.
        first_us, last_us: of the first and last packet of any AMQP connection, in microseconds.
        totals: connections, octets, frames and messages each way, gaps, octets missing, frames in error.
        connections: the connections, with all columns of their table, by octets.
        products, users, vhosts: who talked, by octets.
        kinds: messages by the method that carries them.
        exchanges, routing_keys, queues: by messages.
        rates: messages over time.
        confirms: from basic.publish to the broker's basic.ack or basic.nack, on channels in confirm mode.
        acks: from basic.deliver or basic.get-ok to the consumer's basic.ack, basic.nack or basic.reject.
        closings: how channels and connections were closed.
        endings: the first ones that were closed by an error, with the methods before.
        returns: messages returned.
        faults: rows of the table `errors` by code.
        problems: the first of them.
    """

    files: list[str]
    first_us: int | None
    last_us: int | None
    totals: dict[str, int]
    connections: Ranking
    products: Ranking
    users: Ranking
    vhosts: Ranking
    kinds: Ranking
    exchanges: Ranking
    routing_keys: Ranking
    queues: Ranking
    rates: Rates
    confirms: Latency
    acks: Latency
    closings: Ranking
    endings: list[Ending]
    returns: Ranking
    faults: Ranking
    problems: list[Problem]

    def as_dict(self) -> dict[str, Any]:
        """The summary as dicts, lists, strings and numbers."""
        return asdict(self)
