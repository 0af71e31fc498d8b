"""One connection of a client: the handshake, and events to channels and their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._protocol.codes import FRAME_ERROR, INTERNAL_ERROR, REPLY_NAMES, SYNTAX_ERROR
from ..connection import (
    ChannelClosed,
    ConnectionClosed,
    Event,
    MessageReceived,
    MethodReceived,
    ProtocolHeaderReceived,
    Settled,
    Violation,
)
from ..connection.login import credentials
from ..errors import DecodeError, EncodeError, LocalProtocolError, ReplyError
from ..reply_errors import AmqpPreconditionFailed
from .arguments import is_finite
from .channels import Channel
from .faults import Sent
from .methods import ON_ONE_LINE, put_on_one_line
from .reader import RefusedError, ids_of
from .records import ConnectionState
from .users import Login
from .versions import CrashedError

if TYPE_CHECKING:
    from .broker import Broker
    from .hosts import VirtualHost
    from .messages import Content, Message
    from .queues import Queue
    from .wire import BrokerStream, Wire

MECHANISMS = "PLAIN AMQPLAIN"
ENDED = ("closing", "closed")
UNREAD_OCTETS = 16 << 20  # answers that a client has not read, beyond which it is not read either
WAITING_OCTETS = 1 << 18  # the same beyond which no message is delivered to it
CAPABILITIES = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "consumer_priorities": True,
    "authentication_failure_close": True,
    "per_consumer_qos": True,
    "direct_reply_to": True,
}
# Clients look at the product to know what to expect of a broker.
SERVER_PROPERTIES = {
    "product": "RabbitMQ",
    "version": "",
    "platform": "amqpcodec.testing",
    "information": "a broker in memory, for tests",
    "capabilities": CAPABILITIES,
}


class Session:
    """The broker's end of a connection, which takes the events of its stream.

    Attributes:
        number: which connection it is, from 1.
        login: who has logged in.
        host: the virtual host, once it is opened.
        wire: its transport.
        confirming: channels with publishes to be confirmed.
        is_cut_off: whether a fault has ended it.
    """

    host: VirtualHost
    wire: Wire

    def __init__(self, broker: Broker, stream: BrokerStream, number: int) -> None:
        self.broker = broker
        self.clock = broker.clock
        self.faults = broker.faults
        self.stream = stream
        self.connection = stream.connection
        self.amqp: Any = stream.connection.dialect
        self.number = number
        self.login = Login(self)
        self.client_properties: dict[str, Any] = {}
        self.channels: dict[int, Channel] = {}
        self._pauses: set[str] = set()  # why nothing is read
        self._waiting: dict[Queue, None] = {}  # queues to go on with once the client has read
        self._seen: Event | None = None  # by faults
        self.confirming: list[Channel] = []
        self.is_cut_off = False

    def connected(self, wire: Wire) -> None:
        """Begin, now that there is a transport; before that, TLS may have failed."""
        self.wire = wire
        self.broker.came(self)

    # -- events

    def event_received(self, event: Event) -> None:
        """Do what an event asks for, unless faults deal with it. Those see each event once."""
        if not self.is_cut_off and not (
            self.faults.armed and event is not self._seen and self.faults.met(self, event)
        ):
            self.handle(event)

    def handle(self, event: Event) -> None:
        """Do what an event asks for, and close what it says if that cannot be."""
        try:
            if type(event) is MessageReceived:
                self._on_message(event)
            else:
                self._on_other(event)
        except ReplyError as error:
            self._refuse(event, error.code, str(error), error.closes)
        except RefusedError as refusal:
            self.refuse_frame(refusal)
        except (
            CrashedError,
            DecodeError,
        ):  # the latter of properties, which are read when they are asked for
            self.close(INTERNAL_ERROR, "INTERNAL_ERROR")
        if self.connection.bytes_to_send > UNREAD_OCTETS:
            self.pause("answers")

    def _on_message(self, event: MessageReceived) -> None:
        channel = self.channels.get(event.channel)
        if channel is not None:  # else the broker has closed it while this message had to wait
            if self.broker.blocked:
                self.pause("blocked")
            channel.publish(event)

    def _on_other(self, event: Event) -> None:
        match event:
            case Settled(number, method, tags) if number in self.channels:
                self._on_settled(self.channels[number], method, tags)
            case MethodReceived(number, method):
                self._check_texts(number, method)
                if not _has_readable_tables(method):
                    self.hang_up()
                elif number:
                    self._on_method(number, method)
                else:
                    self._on_connection_method(method)
            case ProtocolHeaderReceived(accepted=True):
                self.send(0, self._start())
            case ChannelClosed(number) | Violation(number) if number:
                self._forget(number)
            case Violation(error=DecodeError() as error) if error.reply_code in (FRAME_ERROR, SYNTAX_ERROR):
                self._refuse_undecodable(event)
            case Violation() | ConnectionClosed():
                self.end()

    def _on_settled(self, channel: Channel, method: Any, tags: tuple[int, ...]) -> None:
        if not tags and method.delivery_tag:  # the connection knows it, from before a recover
            raise AmqpPreconditionFailed(f"unknown delivery tag {method.delivery_tag}")
        basic = self.amqp.Basic
        if type(method) is basic.Ack:
            channel.settle(tags, "acknowledge")
        elif type(method) is basic.Nack:
            channel.settle(tags, "release" if method.requeue else "discard")
        else:
            channel.settle(tags, "requeue" if method.requeue else "reject")

    def _check_texts(self, number: int, method: Any) -> None:
        """Refuse short strings that are not UTF-8."""
        spec = method.spec
        texts = [getattr(method, field.attribute, "") for field in spec.fields if field.type == "shortstr"]
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            ids = 0 if number else ids_of(spec)
            raise RefusedError(FRAME_ERROR, "Malformed UTF-8 in shortstr", ids) from None

    def _on_method(self, number: int, method: Any) -> None:
        if isinstance(method, self.amqp.Channel.Open):
            self.broker.store.made()
            self.channels[number] = Channel(self, number)
            self.send(number, self.amqp.Channel.OpenOk())
            return
        channel = self.channels.get(number)
        if channel is None:
            return  # the broker has closed it while this method had to wait
        if method.spec.name in ON_ONE_LINE:
            put_on_one_line(method)
        self.broker.handlers[type(method)](channel, method)

    # -- the handshake

    def _start(self) -> Any:
        properties = dict(
            SERVER_PROPERTIES, version=self.broker.version.told, cluster_name="amqpcodec.testing"
        )
        return self.amqp.Connection.Start(0, 9, properties, MECHANISMS.encode(), b"en_US")

    def _on_connection_method(self, method: Any) -> None:
        classes = self.amqp.Connection
        if isinstance(method, classes.StartOk):
            self._log_in(method)
        elif isinstance(method, classes.TuneOk) and method.heartbeat:
            self.stream.expect_heartbeats(method.heartbeat)
        elif isinstance(method, classes.Open):
            self._open(method.virtual_host)
        elif isinstance(method, classes.UpdateSecret):
            self.login.renew(method.new_secret)
            self.send(0, classes.UpdateSecretOk())

    def _log_in(self, start_ok: Any) -> None:
        self.client_properties = dict(start_ok.client_properties)
        mechanism = start_ok.mechanism
        known = credentials(self.connection, start_ok) if mechanism in MECHANISMS.split() else None
        if known is None or (
            mechanism == "PLAIN" and start_ok.response[:1] != b"\0"
        ):  # which names another user
            self.hang_up()
            return
        if self.login.accepts(*known):
            self.send(0, self.connection.tune())
            return
        text = (
            f"Login was refused using authentication mechanism {mechanism}. "
            "For details see the broker logfile."
        )
        if self.can("authentication_failure_close"):
            self.close(403, f"ACCESS_REFUSED - {text}")
        else:
            self.hang_up()

    def _open(self, name: str) -> None:
        host = self.broker.hosts.get(name)
        if host is None:
            shown = name.encode("ascii", "replace").decode()[:127]
            method = self.amqp.Connection.Open.spec
            self.close(530, f"NOT_ALLOWED - vhost {shown} not found", method.class_id, method.method_id)
            return
        self.host = host
        self.send(0, self.amqp.Connection.OpenOk())
        if self.broker.blocked:
            self.tell_blocked()

    def state(self) -> ConnectionState:
        """Return what there is to know of it."""
        host = getattr(self, "host", None)
        return ConnectionState(
            self.number, self.login.name, host.name if host is not None else "", tuple(self.channels),
            self.client_properties,
        )  # fmt: skip

    def can(self, capability: str) -> bool:
        """Return whether the client has said that it knows something."""
        capabilities = self.client_properties.get("capabilities")
        return isinstance(capabilities, dict) and capabilities.get(capability) is True

    # -- what goes to the client

    def send(self, channel: int, method: Any, message: Message | Content | None = None) -> None:
        """Send a method, with what it carries, while the connection is open; a fault may come first."""
        if self.connection.state in ENDED or (
            self.faults.armed and self.faults.met(self, Sent(channel, method))
        ):
            return
        try:
            if message is None:
                self.connection.send(channel, method)
            else:
                self.connection.send_message(channel, method, message.to_send, message.body)
        except (EncodeError, LocalProtocolError) as error:  # its own fault, not of who has published
            if not channel or self.connection.channel_state(channel) not in ENDED:
                self.close(506, f"RESOURCE_ERROR - {error}")

    def tell_confirms(self) -> None:
        """Confirm the publishes that were taken since the last time."""
        confirming, self.confirming = self.confirming, []
        for channel in confirming:
            channel.confirm_taken()

    def takes_deliveries(self, queue: Queue) -> bool:
        """Return whether the client reads; if not, its queue is asked again once it does."""
        if self.connection.bytes_to_send > WAITING_OCTETS:
            self._waiting[queue] = None
            return False
        return self.connection.state == "open"

    def resume_writing(self) -> None:
        """Go on, now that the client has read."""
        waiting, self._waiting = self._waiting, {}
        for queue in waiting:
            queue.dispatch()
        self.resume("answers")

    def tell_blocked(self) -> None:
        """Tell the client that its publishes are not read, or are again, if it knows of that."""
        if not self.can("connection.blocked") or self.connection.state != "open":
            return
        classes = self.amqp.Connection
        reason = fitting(self.broker.blocked)
        self.send(0, classes.Blocked(reason) if reason else classes.Unblocked())

    # -- waiting

    def pause(self, reason: str) -> None:
        """Read nothing more, for a reason."""
        if not self._pauses:
            self.wire.pause_reading()
        self._pauses.add(reason)

    def resume(self, reason: str) -> None:
        """Read again, if there is no other reason not to; first comes what had to wait."""
        if reason not in self._pauses:
            return
        self._pauses.remove(reason)
        self.stream.go_on()
        self.tell_confirms()
        if not self._pauses and not self.wire.is_closing():
            self.wire.resume_reading()

    @property
    def is_paused(self) -> bool:
        """Return whether nothing is read, and events have to wait."""
        return bool(self._pauses)

    def defer(self, event: Event | None, seconds: float | None) -> None:
        """Take an event, and all that follow, only after so many seconds; None for never."""
        if event is not None:
            self._seen = event
            self.stream.put_back(event)
        self.pause("late")
        if seconds is not None:
            self.clock.call_later(seconds, self.resume, "late")

    def hold(self, seconds: float | None) -> None:
        """Write nothing for so many seconds; None for ever."""
        self.stream.flush()
        self.wire.holds = True
        if seconds is not None:
            self.clock.call_later(seconds, self.wire.release)

    def send_octets(self, octets: bytes) -> None:
        """Send octets of a test's own, after what was sent."""
        self.stream.flush()
        self.wire.put(octets)

    def cut_off(self) -> None:
        """End the TCP connection without a close; nothing of it is heard any more."""
        self.is_cut_off = True
        self.wire.close()

    def lost(self) -> None:
        """Take note that the TCP connection is gone, and with it what had to wait."""
        if self._pauses:
            self._pauses.clear()
            self.is_cut_off = True

    # -- the end

    def _refuse(self, event: Any, code: int, text: str, closes: str) -> None:
        """Close the channel or the connection, whichever an error says."""
        number = event.channel
        method = event.method if hasattr(event, "method") else self.amqp.Channel.Flow()
        ids = method.spec.class_id, method.spec.method_id
        if closes == "channel":
            self.close_channel(number, code, named(code, text), *ids)
        else:
            self.close(code, named(code, text), *ids)

    def refuse_frame(self, refusal: RefusedError) -> None:
        """Close the connection for a frame, or the channel that is named."""
        told = refusal.code, named(refusal.code, str(refusal)), refusal.class_id, refusal.method_id
        if refusal.channel:
            self.close_channel(refusal.channel, *told)
        else:
            self.close(*told)

    def _refuse_undecodable(self, violation: Violation) -> None:
        """Say what RabbitMQ says of a method that cannot be decoded, in place of what the connection says."""
        error: Any = violation.error
        said = b"" if violation.to_send is None else self.amqp.encode_method(0, violation.to_send)
        self.wire.write(self.connection.data_to_send().removesuffix(said))
        if error.reply_code != FRAME_ERROR or not hasattr(self, "host"):  # the table in it, or a handshake
            self.hang_up()
            return
        shown = ",".join(map(str, self.stream.arguments_at(error.offset)))
        told = (
            FRAME_ERROR,
            fitting(f"FRAME_ERROR - cannot decode <<{shown}>>"),
            error.class_id,
            error.method_id,
        )
        if not error.channel:
            told = INTERNAL_ERROR, "INTERNAL_ERROR", 0, 0
        self.wire.write(self.amqp.encode_method(0, self.amqp.Connection.Close(*told)))
        self.end()

    def hang_up(self) -> None:
        """End the connection without a word."""
        self.end()
        self.stream.end()

    def close_channel(self, number: int, code: int, text: str, class_id: int = 0, method_id: int = 0) -> None:
        """Close a channel, which may be one that is being opened."""
        self.tell_confirms()
        self._forget(number)
        if self.connection.channel_state(number) in ("opening", "open"):
            self.connection.close_channel(number, code, fitting(text), class_id, method_id)

    def close(self, code: int, text: str, class_id: int = 0, method_id: int = 0) -> None:
        """Close the connection."""
        self.tell_confirms()
        if self.connection.state not in ENDED:
            try:
                self.connection.close(code, fitting(text), class_id, method_id)
            except LocalProtocolError:  # no one has said anything yet
                self.stream.end()
        self.end()
        if self._pauses and not self.wire.holds:
            self.clock.call_soon(self._hear_out)

    def _hear_out(self) -> None:
        """Read again, for the client's answer to the close; what had to wait is dropped."""
        self._pauses.clear()
        self.stream.put_back(None)
        self.stream.go_on()
        if not self.wire.is_closing():
            self.wire.resume_reading()

    def _forget(self, number: int) -> None:
        channel = self.channels.pop(number, None)
        if channel is not None:
            self.broker.store.made(-1)
            channel.end()

    def end(self) -> None:
        """Give back all that the connection has."""
        self.login.end()
        for number in list(self.channels):
            self._forget(number)
        for host in self.broker.hosts.values():
            for queue in [queue for queue in host.queues.values() if queue.owner is self]:
                host.delete_queue(queue)

    def stream_ended(self, error: Exception | None) -> None:
        """Take the end of the stream; an error is one of the broker, which it keeps to be seen."""
        self.end()
        self.broker.ended(self, error)


def _has_readable_tables(method: Any) -> bool:
    tables = [each.attribute for each in method.spec.fields if each.type == "table"]
    return all(is_finite(getattr(method, name)) for name in tables)


def named(code: int, text: str) -> str:
    """Return a text after the name of its reply code."""
    return f"{REPLY_NAMES.get(code, 'internal-error').upper().replace('-', '_')} - {text}"


def fitting(text: str) -> str:
    """Return a text that a short string can carry; dots stand where a longer one is cut."""
    octets = text.encode("utf-8", "replace")
    return text if len(octets) < 256 else octets[:252].decode("utf-8", "ignore") + "..."


__all__ = ["Session"]
