"""The summary of captures: ordinary values, which can be printed or written as JSON.

Times are integer nanoseconds since 1970-01-01 UTC, durations integer nanoseconds. Octets of messages are
those of the bodies of complete messages. Text from the wire is as in the tables of `amqpcodec.arrow`, not
escaped.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .units import UNITS

LEAST_GROWTH = 10  # messages by which a queue has grown


SUCCESS = (None, 0, 200)
"""Reply codes of what is closed without an error; None where it is not known."""


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
        outcome: what the answer was, as in the table `deliveries`.
        exchange, routing_key: of the message.
        queue, consumer_tag: where it was delivered; None for a publish.
    """

    file: str
    flow: int
    channel: int
    tag: int
    packet: int
    time_ns: int
    answer_packet: int
    latency_ns: int
    outcome: str
    exchange: str | None
    routing_key: str | None
    queue: str | None
    consumer_tag: str | None


@dataclass(frozen=True)
class Party:
    """One of those who took part: a queue, a consumer, or a publisher to an exchange.

    Attributes:
        keys: who it is.
        name: the name of its connection, or of the client's product; None for a queue, or without a name.
        messages: delivered or published.
        per_second: the same in a second, from its first message to its last; None for a single one.
        redelivered: delivered before.
        count: with an answer.
        refused: answered by basic.nack or basic.reject; part of `count`.
        unanswered, waiting, unfollowed: as in `Latency`.
        most_waiting: how many waited for an answer at once, at most.
        prefetch: the `prefetch_count` of the last basic.qos on the channel of a consumer: how many may wait,
            0 for any number; None without one.
        idle_ns: how long nothing waited for an answer between its first message and its end; None if nothing
            ever did. A consumer ends with its cancellation, channel, connection or recording.
        pause_ns: the longest time without a message, likewise.
        mean_ns, p50_ns, p99_ns, most_ns: latencies of the answers, percentiles at most 0.8 % too large; None
            without answers.
        wait_p50_ns, wait_p99_ns: of a queue, how long messages waited from publish to delivery, likewise;
            None where that is not known of any.
        size_p50, size_p99, size_most: of a publisher, octets of bodies, likewise; None without any.
        first_ns, last_ns: when its first and last message came.
        others: how many it stands for, if it is the sum of those that are not shown; it has but the sums of
            counts of messages then. All beyond the first 1,000 count as one.
    """

    keys: dict[str, Any]
    name: str | None
    messages: int
    per_second: float | None
    redelivered: int
    count: int | None
    refused: int
    unanswered: int
    waiting: int
    unfollowed: int
    most_waiting: int | None
    prefetch: int | None
    idle_ns: int | None
    pause_ns: int | None
    mean_ns: int | None
    p50_ns: int | None
    p99_ns: int | None
    most_ns: int | None
    wait_p50_ns: int | None
    wait_p99_ns: int | None
    size_p50: int | None
    size_p99: int | None
    size_most: int | None
    first_ns: int | None
    last_ns: int | None
    others: int = 0


@dataclass(frozen=True)
class Wait:
    """How long messages waited from their publish to their first delivery.

    Attributes:
        queue: where they were delivered from.
        exchange, routing_key: where they were published to.
        messages: delivered for the first time.
        exact, by_id, by_content: how many were joined to their publish by the order of the queue, by an id,
            by their content.
        dropped: how many may be of a publish that was forgotten, since too many were remembered.
        mean_ns, p50_ns, p99_ns, most_ns: how long those that were joined waited, percentiles at most 0.8 %
            too large; None without any.
        others: how many it stands for, if it is the sum of those that are not shown, with counts alone.
    """

    queue: str | None
    exchange: str | None
    routing_key: str | None
    messages: int
    exact: int
    by_id: int
    by_content: int
    dropped: int
    mean_ns: int | None
    p50_ns: int | None
    p99_ns: int | None
    most_ns: int | None
    others: int = 0


@dataclass(frozen=True)
class Client:
    """Who publishes to an exchange.

    Attributes:
        client: address and port.
        name: the name of its connection, or of its product.
        messages: published by it.
    """

    client: str | None
    name: str | None
    messages: int


@dataclass(frozen=True)
class Publishers:
    """Who publishes to an exchange.

    Attributes:
        exchange: its name.
        clients: the first three, those with most messages first.
        others: how many further ones there are, of those among the first 1,000 in `by_publisher`.
        size_p50, size_p99, size_most: octets of the bodies published, percentiles at most 0.8 % too large;
            None where there are none among the first 1,000 exchanges.
    """

    exchange: str | None
    clients: list[Client]
    others: int
    size_p50: int | None
    size_p99: int | None
    size_most: int | None


@dataclass(frozen=True)
class Band:
    """Latencies over time, in intervals by when the answers came.

    Attributes:
        start_ns: when the first interval begins; None without answers.
        width_ns: duration of an interval.
        answered: the answers in each interval.
        p50_ns, p99_ns: percentiles in each, at most 6.3 % too large; None for one without answers.
    """

    start_ns: int | None
    width_ns: int
    answered: list[int]
    p50_ns: list[int | None]
    p99_ns: list[int | None]


@dataclass(frozen=True)
class Latency:
    """Latencies of answers.

    Attributes:
        count: messages with an answer.
        unanswered: messages without an answer until their channel, connection or file ended.
        waiting: those of them that waited when the recording ended.
        unfollowed: messages not followed, because too many waited at once or octets before were missing.
        negative: answered by basic.nack or basic.reject; part of `count`.
        negative_messages: how many different messages these were, as far as that is known: of the same
            publish, or with the same id.
        mean_ns, least_ns, most_ns: exact; None without answers.
        percentiles: by name, at most 0.8 % too large.
        histogram: pairs of the upper end of a class in nanoseconds and the number of its answers; from 128 ns
            on there are four classes an octave.
        over_time: two of the percentiles over time.
        slowest: the slowest answers, slowest first.
    """

    count: int
    unanswered: int
    waiting: int
    unfollowed: int
    negative: int
    negative_messages: int
    mean_ns: int | None
    least_ns: int | None
    most_ns: int | None
    percentiles: dict[str, int]
    histogram: list[tuple[int, int]]
    over_time: Band
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
class Incident:
    """Something unusual about a connection.

    Attributes:
        kind: ``"not-opened"``: its handshake began and did not end; ``"refused"``: an error closed it before
            that; ``"ended-without-close"``: no connection.close before its end; ``"open-at-the-end"``: the
            same, but the recording ended with it or before it; ``"silent"``: no octet for more than two
            heartbeats; ``"blocked"``: by connection.blocked; ``"one-sided"``: nothing was recorded of a
            direction in which there were octets, so nothing is claimed about it; ``"recorded-twice"``: it
            repeats another connection with other addresses or in another tunnel; ``"left-out"``: so it is not
            counted.
        file, flow, client, server: of the connection.
        direction: 0 from the client, 1 from the server; None if it concerns both.
        time_ns: when it began, or was last seen.
        duration_ns: how long it lasted.
        text: the reason, as far as one is known.
    """

    kind: str
    file: str
    flow: int
    client: str | None
    server: str | None
    direction: int | None
    time_ns: int | None
    duration_ns: int | None
    text: str | None


@dataclass(frozen=True)
class Life:
    """A connection or channel, from its beginning to its end.

    Attributes:
        file, flow, client: where it is.
        name: the name of its connection, or of the client's product.
        channel: the channel; 0 for the connection.
        begin_ns, end_ns: its first and last packet; of a channel its first method and channel.close-ok.
        ended: ``"closed"``: by a close method; ``"with-connection"``: without one; ``"broken"``: TCP ended
            without connection.close; ``"recording"``: it was open when the recording ended; ``"unknown"``:
            the recording lacks the end.
        by, reply_code, reply_text: who sent the close method, and what is in it; None without one.
        channels: how many channels of the connection there were; 0 for a channel.
    """

    file: str
    flow: int
    client: str | None
    name: str | None
    channel: int
    begin_ns: int | None
    end_ns: int | None
    ended: str
    by: str | None
    reply_code: int | None
    reply_text: str | None
    channels: int

    @property
    def duration_ns(self) -> int | None:
        """Return how long it lasted; None without times."""
        return None if self.begin_ns is None or self.end_ns is None else self.end_ns - self.begin_ns

    @property
    def went_wrong(self) -> bool:
        """Return whether an error ended it, or nobody said why."""
        return self.ended == "broken" or self.reply_code not in SUCCESS


@dataclass(frozen=True)
class QueueDepth:
    """How full a queue is, by the `message_count` of queue.declare-ok and basic.get-ok, and basic.get-empty.

    Attributes:
        queue: its name.
        reports: how often the broker said it.
        first, last, least, most: messages ready in it.
        falls: how often there were fewer than in the report before.
        published: messages published to it by its name, over the default exchange; not those by other ways.
        delivered: messages delivered from it in the recording.
    """

    queue: str
    reports: int
    first: int
    last: int
    least: int
    most: int
    falls: int
    published: int
    delivered: int

    @property
    def only_grows(self) -> bool:
        """Return whether it got at least ten more messages, and never had fewer than in the report before."""
        return self.last - self.first >= LEAST_GROWTH and not self.falls


@dataclass(frozen=True)
class Finding:
    """A problem, or something else worth saying, derived from the rest of a summary.

    Attributes:
        code: names what it is, such as ``"returned"``.
        severity: ``"error"``: something went wrong; ``"warning"``: it may have, or the recording is at fault;
            ``"note"``: it explains numbers.
        section: title of the part of the report with the details.
        count: how many there are, of what `brief` says.
        brief: a few words with the count.
        text: a sentence.
    """

    code: str
    severity: str
    section: str
    count: int
    brief: str
    text: str


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
        totals: connections, octets, frames and messages each way, gaps, octets missing, frames in error;
            octets whose frames a gap cuts, packets that the recorder has dropped.
        connections: the connections, with all columns of their table, by octets.
        products, users, vhosts: who talked, by octets.
        kinds: messages by the method that carries them.
        exchanges, routing_keys, queues: by messages.
        rates: messages over time.
        confirms: from basic.publish to the broker's basic.ack or basic.nack, on channels in confirm mode.
        acks: from basic.deliver or basic.get-ok to the consumer's basic.ack, basic.nack or basic.reject.
        waits: from basic.publish to basic.deliver or basic.get-ok, by queue and routing key.
        by_queue, by_consumer, by_publisher: the same by who took part, those with most messages first.
        published_by: who publishes to each exchange, in the order of `exchanges`.
        closings: how channels and connections were closed.
        endings: the first ones that were closed by an error, with the methods before.
        returns: messages returned.
        faults: rows of the table `errors` by code.
        problems: the first of them.
        settled: methods that acknowledge or refuse messages, by who sent them.
        redelivered: messages delivered with the bit `redelivered`, by queue.
        depths: how full queues are, those that grew most first.
        incidents: what happened to connections, by kind.
        first_incidents: the first ones of each kind.
        lives: connections and some channels of each, in the order in which they begin: those with the most
            octets, and the first that went wrong.
        findings: problems and what explains numbers, the worst first; they do not depend on `top`.
        verdict: what they come to, in a sentence.
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
    waits: list[Wait]
    by_queue: list[Party]
    by_consumer: list[Party]
    by_publisher: list[Party]
    published_by: list[Publishers]
    closings: Ranking
    endings: list[Ending]
    returns: Ranking
    faults: Ranking
    problems: list[Problem]
    settled: Ranking
    redelivered: Ranking
    depths: list[QueueDepth]
    incidents: Ranking
    first_incidents: list[Incident]
    lives: list[Life]
    findings: list[Finding]
    verdict: str

    @property
    def duration_ns(self) -> int | None:
        """From the first packet to the last one; None without times."""
        if self.first_us is None or self.last_us is None:
            return None
        return (self.last_us - self.first_us) * 1000

    def carried(self, *kinds: str) -> int:
        """Messages of some kinds."""
        return sum(row["messages"] for row in self.kinds.rows if row["kind"] in kinds)

    def as_dict(self) -> dict[str, Any]:
        """The summary as dicts, lists, strings and numbers, and the `units` of the numbers."""
        return {**asdict(self), "units": UNITS}
