"""Follows publishes to confirms, deliveries to acknowledgements.

Delivery tags count from 1 on each channel. The broker numbers what it delivers itself; the numbers of
published messages are counted by both sides from confirm.select on (RabbitMQ's publisher confirms). With
``multiple`` an answer is for all messages up to its tag; tag 0 then means all of them. In transactions
answers count only at tx.commit, so channels in that mode are left out, as are consumers that do not
acknowledge.

Contents and answers are read from the octets of their frames, since there may be very many. All five dialects
have the same arguments there; `steps.step_of` refuses others. What requests mean is in `requests`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING

from amqpcodec import DecodeError
from amqpcodec._kernel.wire import METHOD, OVERHEAD
from amqpcodec._typing import PURE
from amqpcodec.capture import Connection

from .origins import NO_TIME, FrameOrigin, none_for
from .steps import DELIVER, GET_OK, PUBLISH, RETURN
from .text import clean

if TYPE_CHECKING:
    from .waits_py import Waits

Source = tuple[str | None, bool]  # of messages: a queue, and whether they are not acknowledged
Request = tuple[str, str | None, bool]  # a consumer tag and such a source

MOST_WAITING = 200_000  # messages without an answer yet, in total
MOST_OCTETS = 256 << 20  # of their methods and content headers
MOST_CHANNELS = 20_000
LOST_COUNT = -1  # in place of the number of the next publish
_ARGUMENTS = 11  # octets of a method's frame before its arguments
_UNKNOWN = NO_TIME  # a packet or time
_ALL = 1 << 64  # above every tag
_METHOD = bytes([METHOD])  # the first octet of a method's frame


class Message:
    """A message that is followed, without its body.

    Attributes:
        connection, direction, channel: where it was seen.
        packet, time_ns, offset: of its method; NO_TIME for a packet or time that is not known.
        dialect: module of its dialect.
        frames: its method and content header, one behind the other; none of a message without a method.
        header_offset: offset of that header.
        size: octets of all its frames.
        complete: whether all of it came.
        error, culprit: what is wrong with the order of its frames, and the frame that is.
        step: its method, as `steps.step_of` says.
        tag: its number; 0 for one that no answer can name.
        queue: where it comes from, if that is known.
        sure: whether its consumer is known to acknowledge.
        content: what stands for its properties and body, see `waits.digest`; empty where nobody asks.
        found: how the publish was found that it is of, see `waits`; None if it was not.
        wait_ns: how long it waited, or NO_TIME.
        publish_flow, publish_offset: where that publish is.
    """

    __slots__ = (
        "channel", "complete", "connection", "content", "culprit", "dialect", "direction", "error", "found",
        "frames", "header_offset", "offset", "packet", "publish_flow", "publish_offset", "queue", "size",
        "step", "sure", "tag", "time_ns", "wait_ns",
    )  # fmt: skip

    def __init__(
        self,
        origin: FrameOrigin,
        channel: int,
        dialect: ModuleType,
        step: int,
        frames: bytes,
        header_offset: int,
    ) -> None:
        self.connection: Connection = origin.connection
        self.direction = origin.direction
        self.packet = _UNKNOWN if origin.packet is None else origin.packet
        self.time_ns = _UNKNOWN if origin.time_ns is None else origin.time_ns
        self.offset = origin.offset
        self.channel = channel
        self.dialect = dialect
        self.step = step
        self.frames = frames
        self.header_offset = header_offset
        self.size = len(frames)
        self.complete = False
        self.error: DecodeError | None = None
        self.culprit = b""
        self.tag = 0
        self.queue: str | None = None
        self.sure = False
        self.content = b""
        self.found: str | None = None
        self.wait_ns = _UNKNOWN
        self.publish_flow = self.publish_offset = 0

    @property
    def origin(self) -> FrameOrigin:
        """Return where its method was found."""
        packet, time_ns = none_for(self.packet), none_for(self.time_ns)
        return FrameOrigin(self.connection, self.direction, packet, time_ns, self.offset)

    @property
    def method(self) -> bytes | None:
        """Return the frame of its method."""
        return self.frames[: self.header_at()] or None

    @property
    def header(self) -> bytes | None:
        """Return the frame of its content header."""
        return self.frames[self.header_at() :] or None

    @property
    def consumer_tag(self) -> str | None:
        """Return the tag of the consumer that it is delivered to; None for one that is not delivered."""
        return _text(_consumer_tag(self.frames)) if self.step == DELIVER else None

    @property
    def exchange(self) -> str | None:
        """Return the exchange that it is published to; None for one that is not published."""
        return _text(_shortstr(self.frames, _ARGUMENTS + 2)) if self.step == PUBLISH else None

    def header_at(self) -> int:
        """Return the octets of its method's frame."""
        if self.frames[:1] != _METHOD:
            return 0
        return int.from_bytes(self.frames[3:7], "big") + OVERHEAD


class Settler:
    """Takes the messages of which it is known what became.

    Attributes:
        call: is called with the arguments of `settle`; to be set by who gives a follower messages.
    """

    __slots__ = ("call",)

    def __init__(self) -> None:
        self.call: Callable[[Message, str | None, int, int], None] | None = None

    def settle(self, message: Message, outcome: str | None, packet: int, time_ns: int) -> None:
        """Take a message, once, and what became of it.

        Args:
            message: the message.
            outcome: one of the outcomes in docs/columns.md; None where no answer is due.
            packet, time_ns: of what decided on that, or NO_TIME.
        """
        if self.call is not None:
            self.call(message, outcome, packet, time_ns)


class Channel:
    """The state of a channel. A recording may have very many, so what most of them never need is made late.

    Attributes:
        next_tag: number of the next published message; 0 outside confirm mode, -1 if messages were missed.
        published, delivered: the messages that wait for an answer, by tag.
        first_published, first_delivered: no lower tag waits.
        doubted_published, doubted_delivered: an answer up to this tag may be among octets that are missing.
        transacted: whether it is in the mode of tx.select.
        consumers: of each tag, the queue and whether it does not acknowledge.
        queue: the name of the last queue that was declared.
        consumes, gets: requests not yet answered: consumer tag, queue, whether without acknowledgements.
    """

    __slots__ = (
        "consumers", "consumes", "delivered", "doubted_delivered", "doubted_published", "first_delivered",
        "first_published", "gets", "next_tag", "published", "queue", "transacted",
    )  # fmt: skip

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget everything: the number belongs to another channel now."""
        self.next_tag = self.first_published = self.first_delivered = 0
        self.doubted_published = self.doubted_delivered = 0
        self.published: dict[int, Message] | None = None
        self.delivered: dict[int, Message] | None = None
        self.transacted = False
        self.consumers: dict[bytes, Source] | None = None
        self.queue: str | None = None
        self.consumes: tuple[Request, ...] = ()
        self.gets: tuple[Request, ...] = ()


class Followed:
    """The channels of one connection. A `Follower` makes it.

    Attributes:
        follower: that one.
        connection: the connection.
        channels: by number.
        closes: how many of its directions have ended.
        heard: the directions in which there was a frame: 1 client to server, 2 server to client, 3 both.
        forgotten: how often its channels were forgotten to make room for others.
    """

    __slots__ = ("channels", "closes", "connection", "follower", "forgotten", "heard")

    def __init__(self, follower: Follower, connection: Connection) -> None:
        self.follower = follower
        self.connection = connection
        self.channels: dict[int, Channel] = {}
        self.closes = self.heard = self.forgotten = 0

    def channel(self, number: int) -> Channel:
        """Return a channel, which may be new."""
        channel = self.channels.get(number)
        if channel is None:
            self.follower.make_room(self)
            channel = self.channels[number] = Channel()
        return channel

    # -- contents

    def queue_of(self, step: int, number: int, method: bytes) -> str | None:
        """Return the queue that a content comes from, whose method has just come; None if it is not known."""
        channel = self.channels.get(number)
        if channel is None:
            return None
        if step == DELIVER:
            source = None if channel.consumers is None else channel.consumers.get(_consumer_tag(method))
            return None if source is None else source[0]
        if step == GET_OK and channel.gets:
            queue = channel.gets[0][1]
            channel.gets = channel.gets[1:]
            return queue
        return None

    def take(self, message: Message) -> None:
        """Take a message whose frames have come; it is settled now or later."""
        channel = self.channel(message.channel)
        step = message.step
        if step == DELIVER:
            self._deliver(channel, message)
        elif step == GET_OK:
            self._get_ok(channel, message)
        elif step == PUBLISH:
            self._publish(channel, message)
        else:
            if step == RETURN and self.follower.waits is not None:
                self.follower.waits.take(self, message)
            outcome = "returned" if step == RETURN else None if message.frames[:1] == _METHOD else "unknown"
            self.follower.settler.settle(message, outcome, _UNKNOWN, _UNKNOWN)

    def _deliver(self, channel: Channel, message: Message) -> None:
        frames = message.frames
        source = None
        if channel.consumers is not None:
            source = channel.consumers.get(_consumer_tag(frames))
        silent = False
        if source is not None:
            message.queue, silent = source
            message.sure = True
        at = _ARGUMENTS + 1 + frames[_ARGUMENTS] if len(frames) > _ARGUMENTS else len(frames)
        self._follow(channel, message, at, silent)

    def _get_ok(self, channel: Channel, message: Message) -> None:
        silent = False
        message.sure = True
        if channel.gets:
            _, message.queue, silent = channel.gets[0]
            channel.gets = channel.gets[1:]
        if self.follower.depth is not None:
            end = message.header_at() - 1  # the number of messages left is the last argument
            self.follower.depth(message.queue, int.from_bytes(message.frames[end - 4 : end], "big"))
        self._follow(channel, message, _ARGUMENTS, silent)

    def _follow(self, channel: Channel, message: Message, tag_at: int, silent: bool) -> None:
        message.tag = _number(message.frames, tag_at)
        if self.follower.waits is not None:
            self.follower.waits.take(self, message)
        if silent:
            self.follower.settler.settle(message, None, _UNKNOWN, _UNKNOWN)
        elif channel.transacted or not message.tag:
            self.follower.settler.settle(message, "unknown", _UNKNOWN, _UNKNOWN)
        else:
            waiting = channel.delivered
            if waiting is None:
                waiting = channel.delivered = {}
            if not waiting:
                channel.first_delivered = message.tag
            self._wait(waiting, message)

    def _publish(self, channel: Channel, message: Message) -> None:
        if self.follower.waits is not None:
            self.follower.waits.take(self, message)
        tag = channel.next_tag
        if tag == 0:
            self.follower.settler.settle(message, None, _UNKNOWN, _UNKNOWN)
        elif tag < 0:
            self.follower.settler.settle(message, "unknown", _UNKNOWN, _UNKNOWN)
        else:
            channel.next_tag = tag + 1
            message.tag = tag
            waiting = channel.published
            if waiting is None:
                waiting = channel.published = {}
            if not waiting:
                channel.first_published = tag
            self._wait(waiting, message)

    def _wait(self, waiting: dict[int, Message], message: Message) -> None:
        follower, tag = self.follower, message.tag
        if message.time_ns == _UNKNOWN:
            follower.settler.settle(message, "unknown", _UNKNOWN, _UNKNOWN)
            return
        if tag in waiting:  # the channel was opened again, and that was not recorded
            self._settle(waiting, tag, "unknown", _UNKNOWN, _UNKNOWN)
        if follower.waiting >= follower.most_waiting or follower.octets >= follower.most_octets:
            follower.settler.settle(message, "dropped", _UNKNOWN, _UNKNOWN)
            return
        follower.waiting += 1
        follower.octets += len(message.frames)
        waiting[tag] = message
        if follower.watch is not None:
            follower.watch(message, True, message.time_ns)

    def _settle(self, waiting: dict[int, Message], tag: int, outcome: str, packet: int, time_ns: int) -> None:
        """A message waits no more, if there is one of this tag."""
        message = waiting.pop(tag, None)
        if message is not None:
            self._leave(message, outcome, packet, time_ns)

    def _leave(self, message: Message, outcome: str | None, packet: int, time_ns: int) -> None:
        """Count a message no more that has waited, and pass it on."""
        follower = self.follower
        follower.waiting -= 1
        follower.octets -= len(message.frames)
        if follower.watch is not None:
            follower.watch(message, False, time_ns)
        if follower.waits is not None:
            follower.waits.settle(message, outcome)
        follower.settler.settle(message, outcome, packet, time_ns)

    # -- answers

    def answer(self, direction: int, method: bytes, packet: int, time_ns: int) -> None:
        """Take the frame of basic.ack, basic.nack or basic.reject, and its packet and time, or NO_TIME."""
        channel = self.channels.get(method[1] << 8 | method[2])
        waiting = None
        if channel is not None:
            waiting = channel.published if direction else channel.delivered
        if channel is None or not waiting or len(method) < _ARGUMENTS + 10:
            return
        tag, kind, bits = _number(method, _ARGUMENTS), method[10], method[_ARGUMENTS + 8]
        outcome = _outcome(kind, bits, direction)
        if kind == _REJECT or not bits & 1:
            self._settle(waiting, tag, outcome, packet, time_ns)
            return
        first = channel.first_published if direction else channel.first_delivered
        for each in _up_to(waiting, first, tag):
            self._settle(waiting, each, outcome, packet, time_ns)
        if direction:
            channel.first_published = tag + 1
        else:
            channel.first_delivered = tag + 1

    # -- ends

    def lose(self, direction: int) -> None:
        """Octets are missing, perhaps answers: counting no longer matches requests and answers."""
        for channel in self.channels.values():
            channel.consumes = channel.gets = ()
            if direction:
                channel.doubted_published = _last(channel.published)
                continue
            channel.doubted_delivered = _last(channel.delivered)
            if channel.next_tag:
                self.drop(channel.published, 0, "unknown", _UNKNOWN, _UNKNOWN)
                channel.next_tag = LOST_COUNT

    def end(self, packet: int, time_ns: int) -> None:
        """Nothing more will come of the connection."""
        for channel in self.channels.values():
            self.end_channel(channel, packet, time_ns)
        self._forget_channels()

    def forget(self) -> None:
        """Make room for other connections."""
        for channel in self.channels.values():
            self.drop(channel.delivered, 0, "dropped", _UNKNOWN, _UNKNOWN)
            self.drop(channel.published, 0, "dropped", _UNKNOWN, _UNKNOWN)
        self._forget_channels()
        self.forgotten += 1

    def _forget_channels(self) -> None:
        self.follower.channels -= len(self.channels)
        self.channels.clear()

    def end_channel(self, channel: Channel, packet: int, time_ns: int) -> None:
        """No more answers will come."""
        doubted_delivered = channel.doubted_delivered if self.heard & 1 else _ALL
        doubted_published = channel.doubted_published if self.heard & 2 else _ALL
        self.drop(channel.delivered, doubted_delivered, "none", packet, time_ns)
        self.drop(channel.published, doubted_published, "none", packet, time_ns)

    def drop(
        self, waiting: dict[int, Message] | None, doubted: int, outcome: str, packet: int, time_ns: int
    ) -> None:
        """Settle all messages that wait; of those up to a tag it is not known whether they had an answer."""
        if not waiting:
            return
        left = list(waiting.values())
        waiting.clear()
        for message in left:
            # A consumer whose beginning was not recorded may be one that does not acknowledge.
            doubtful = message.tag <= doubted or (
                outcome == "none" and message.step == DELIVER and not message.sure
            )
            self._leave(message, "unknown" if doubtful else outcome, packet, time_ns)


class Follower:
    """Follows the messages of all connections of a recording.

    Attributes:
        settler: is called with each message.
        most_waiting, most_octets: how many may wait, and of how many octets of methods and content headers.
        depth: is called with a queue and the number of messages ready in it, whenever the broker says so;
            None if nobody asks.
        watch: is called with a message that begins to wait for an answer, or no longer does; with whether it
            begins, and the time, or NO_TIME; None if nobody asks.
        waits: joins deliveries to publishes; None if nobody asks.
        waiting: messages that wait for an answer.
        octets: those of them.
        channels: channels that are followed.
        connections: those that have not ended.
    """

    def __init__(self) -> None:
        self.settler = Settler()
        self.most_waiting, self.most_octets = MOST_WAITING, MOST_OCTETS
        self.depth: Callable[[str | None, int], None] | None = None
        self.watch: Callable[[Message, bool, int], None] | None = None
        self.waits: Waits | None = None
        self.waiting = self.octets = self.channels = 0
        self.connections: dict[Connection, Followed] = {}

    def connection(self, connection: Connection) -> Followed:
        """Return a connection, which may be new: one object until it has ended."""
        followed = self.connections.get(connection)
        if followed is None:
            followed = self.connections[connection] = Followed(self, connection)
        return followed

    def lose(self, connection: Connection, direction: int) -> None:
        """Octets are missing in a direction of a connection."""
        if self.waits is not None:
            self.waits.fifos.lose(connection)
        followed = self.connections.get(connection)
        if followed is not None:
            followed.lose(direction)

    def close(self, connection: Connection) -> None:
        """A direction of a connection has ended; with the second one, nothing more will come of it."""
        followed = self.connection(connection)
        followed.closes += 1
        if followed.closes == 2:
            followed.end(_UNKNOWN, _UNKNOWN)
            if self.waits is not None:
                self.waits.fifos.end(connection, orderly=False)
            del self.connections[connection]

    def make_room(self, wanting: Followed) -> None:
        """Have room for one more channel of a connection: the oldest other ones are forgotten."""
        if self.channels >= MOST_CHANNELS:
            # An eighth at once: connections are not gone through for each channel.
            for followed in list(self.connections.values()):
                if self.channels < MOST_CHANNELS - MOST_CHANNELS // 8:
                    break
                if followed is not wanting:
                    followed.forget()
            if self.channels >= MOST_CHANNELS:
                wanting.forget()
        self.channels += 1


_REJECT = 90  # its method id; those of ack and nack
_ACK, _NACK = 80, 120


def _outcome(kind: int, bits: int, direction: int) -> str:
    """Return what an answer decides, by its method id and its bits."""
    if direction:
        return "confirmed" if kind == _ACK else "refused"
    if kind == _ACK:
        return "ack"
    requeue = bits & 1 if kind == _REJECT else bits & 2
    if requeue:
        return "requeued"
    return "reject" if kind == _REJECT else "nack"


def _last(waiting: dict[int, Message] | None) -> int:
    """Return the tag of the message that waits last; 0 without one."""
    return next(reversed(waiting)) if waiting else 0


def _up_to(waiting: dict[int, Message], first: int, tag: int) -> Iterable[int]:
    """Return the tags that an answer for all up to one may be for, in order.

    Removing keys from the front of a dict leaves holes, which take time whenever it is iterated over. So tags
    are counted, unless there are many more of them than messages.
    """
    if not tag:
        return list(waiting)
    if tag - first < 2 * len(waiting) + 64:
        return range(first, tag + 1)
    return sorted([each for each in waiting if each <= tag])


if PURE:

    def _number(octets: bytes, at: int) -> int:
        """Return the longlong at an offset; 0 if it is not there whole."""
        return int.from_bytes(octets[at : at + 8], "big") if len(octets) >= at + 8 else 0


def _consumer_tag(method: bytes) -> bytes:
    """Return the consumer tag in the frame of basic.deliver."""
    return _shortstr(method, _ARGUMENTS)


def _shortstr(octets: bytes, at: int) -> bytes:
    """Return the shortstr at an offset, as far as it is there."""
    return octets[at + 1 : at + 1 + octets[at]] if len(octets) > at else b""


def _text(octets: bytes) -> str:
    return clean(octets.decode("utf-8", "surrogateescape"))
