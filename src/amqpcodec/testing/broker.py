"""The broker: it listens, knows users and virtual hosts, and lets tests look at what there is."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .. import dialect as find_dialect
from ..connection import Connection, ConnectionLimits
from ..limits import Limits
from .clock import Clock, Timer
from .faults import Faults
from .hosts import Store, VirtualHost
from .late import LOOK_SECONDS, look
from .listening import Listener
from .messages import Message
from .methods import HANDLERS, by_class, replies_of
from .records import (
    BindingState,
    ConnectionState,
    ConsumerState,
    ExchangeState,
    History,
    QueueState,
    bindings_of,
    check_queue,
)
from .replies import Replies
from .session import Session
from .threads import on_the_loop
from .users import ALL, User
from .versions import Like, version_of
from .wire import BrokerStream

if TYPE_CHECKING:
    from ssl import SSLContext
    from types import TracebackType

OPEN_OCTETS = 32 << 20  # of the messages of a connection that are not complete, beyond one of the largest
MOST_OBJECTS = 100_000  # exchanges, queues, bindings and the words of their patterns, channels, consumers
ACCEPT_TURNS = 4  # of the event loop, from a socket that is accepted to a connection
FORCED = 320, "CONNECTION_FORCED - broker forced connection closure"
UNSETTLED = 1 << 40  # deliveries of a channel: RabbitMQ has no limit


class Broker:
    """A broker in memory for tests, which answers as RabbitMQ does.

        async with Broker() as broker:
            client = await aio_pika.connect(broker.url)

    Args:
        users: passwords by user name; None for ``guest`` with ``guest``. `add_user` has more of them.
        virtual_hosts: those that there are. Every user may enter each.
        port: to listen on at 127.0.0.1; 0 for any that is free, which it keeps.
        tls: a context for TLS, or True for a certificate that is made at start, of which
            `certificate` has the authority. It needs the extra ``testing``.
        heartbeat, frame_max, channel_max: as the broker offers them.
        max_message_size: octets of the largest body; a larger one is refused with 406 once it has come. None
            for those of the version: 128 MiB, or 16 MiB from 4.0 on.
        memory_limit: octets of messages beyond which publishers are blocked.
        like: the version of RabbitMQ whose answers are given: ``"3.10"``, ``"4.0"`` or ``"4.3"``.
        denied: deprecated features that are not permitted: ``"global_qos"``, ``"transient_nonexcl_queues"``.
        default_queue_type: of queues that stay, where their declaration says none.
        consumer_timeout: seconds in which a delivery is to be settled; None for any time. The broker looks at
            that once a minute, or as often as these seconds where they are less.
        kept: published messages that are kept to be looked at; older ones are counted alone.
        dialect: a name of `amqpcodec.DIALECTS` or a module; it has to have what RabbitMQ's has.

    Attributes:
        version: the record of what the version of RabbitMQ does.
        clock: tests may move it.
        faults: what is to go wrong.
        errors: exceptions of the broker itself, which are bugs in it.
        blocked: why publishers are blocked; empty if they are not.
    """

    def __init__(
        self,
        *,
        users: Mapping[str, str] | None = None,
        virtual_hosts: Sequence[str] = ("/",),
        port: int = 0,
        tls: SSLContext | bool | None = None,
        heartbeat: int = 60,
        frame_max: int = 131072,
        channel_max: int = 2047,
        max_message_size: int | None = None,
        memory_limit: int = 256 << 20,
        kept: int = 10_000,
        like: Like = "3.10",
        denied: Collection[str] = (),
        default_queue_type: str = "classic",
        consumer_timeout: float | None = 1800.0,
        dialect: Any = "rabbitmq-0-9-1",
    ) -> None:
        if users is not None and not isinstance(users, Mapping):
            raise TypeError(f"users must be passwords by user name, not {type(users).__name__}")
        if isinstance(virtual_hosts, str):
            raise TypeError(f"virtual_hosts must be several names, as in [{virtual_hosts!r}]")
        self.version = version_of(
            like, denied=denied, default_queue_type=default_queue_type, consumer_timeout=consumer_timeout
        )
        if max_message_size is None:
            max_message_size = self.version.max_message_size
        self._passwords = {"guest": "guest"} if users is None else dict(users)
        self.clock = Clock()
        self.errors: list[Exception] = []
        self.blocked = ""
        self.certificate = b""
        self.sessions: dict[int, Session] = {}
        self.streams: set[BrokerStream] = set()  # those of sessions, and of such as have ended
        self._names = tuple(virtual_hosts)
        self._max_message_size = max_message_size
        self._memory_limit = memory_limit
        self._kept = kept
        self._listener = Listener(port, self._connect)
        self._is_running = False
        self._return: Timer | None = None  # of a broker that is down
        self._tls = tls
        self._context: SSLContext | None = None
        self._amqp: Any = find_dialect(dialect) if isinstance(dialect, str) else dialect
        self.faults = Faults(self, self._amqp)
        self.handlers: dict[type, Any] = by_class(HANDLERS, self._amqp)
        self.answers = replies_of(self._amqp)
        self._options: dict[str, Any] = {
            "dialect": self._amqp, "heartbeat": heartbeat, "frame_max": frame_max, "channel_max": channel_max,
            # Properties stay the octets that they are: what is not changed goes on as it came.
            "properties": "raw", "limits": Limits(body_size=max_message_size),
            "connection_limits": ConnectionLimits(
                unacknowledged=UNSETTLED, open_bytes=max_message_size + OPEN_OCTETS
            ),
        }  # fmt: skip
        Connection("server", **self._options)  # refuses what it cannot take, before somebody connects
        self._begin()

    def _begin(self) -> None:
        """Begin with nothing."""
        self.store = Store(self._memory_limit, MOST_OBJECTS, self._on_memory)
        self.replies = Replies()
        self.users = {name: User(password) for name, password in self._passwords.items()}
        self.hosts = {
            name: VirtualHost(name, self.clock, self.store, self.replies, self.version)
            for name in self._names
        }
        self.history = History(self._kept)
        self.consumer_tags = count(1)
        self._connections = count(1)

    # -- listening

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that runs it; None before it is started."""
        return self.clock.loop

    async def start(self) -> None:
        """Begin with nothing, and listen.

        Raises:
            OSError: the port cannot be listened on.
            ImportError: a certificate is to be made, and the extra ``testing`` is not installed.
            RuntimeError: it runs.
        """
        if self._is_running:
            raise RuntimeError("the broker runs already: restart() is for an outage")
        self.clock.start()
        self._begin()
        self._context = self._make_context()
        self._listener.open(self._context)
        self._is_running = True
        if self.version.consumer_timeout is not None:
            self._look_later(min(self.version.consumer_timeout, LOOK_SECONDS))
        await self._listener.accepting()

    def _look_later(self, seconds: float) -> None:
        """Look for deliveries that are not settled in time, again and again."""

        def look_now() -> None:
            for session in list(self.sessions.values()):
                for channel in list(session.channels.values()):
                    look(channel, self.clock.time())
            self._look_later(seconds)

        self.clock.call_later(seconds, look_now)

    @on_the_loop
    def listen(self) -> None:
        """Take connections again, on the same port, after `stop_listening`.

        Raises:
            OSError: the port is taken by something else.
            RuntimeError: the broker does not run.
        """
        self._require_running()
        self._forget_outage()
        self._listener.open(self._context)

    @on_the_loop
    def stop_listening(self) -> None:
        """Take no more connections, until `listen`; those that are there stay."""
        self._forget_outage()
        self._listener.close()

    def _forget_outage(self) -> None:
        if self._return is not None:
            self._return.cancel()
            self._return = None

    @on_the_loop
    def restart(self, after: float = 0.0) -> None:
        """Be down for a while: all connections end by connection.close, and none comes.

        Queues and messages stay, except for exclusive queues. What was not settled waits again.

        Args:
            after: seconds of the broker's clock, after which it listens on the same port again.

        Raises:
            RuntimeError: the broker does not run.
            ValueError: seconds are negative.
        """
        self._require_running()
        if not after >= 0:
            raise ValueError(f"a broker is down for 0 seconds or more, not for {after!r}")
        self.stop_listening()
        for session in list(self.sessions.values()):
            session.close(*FORCED)
            session.stream.end()  # the client's answer is not waited for
        if after > 0:
            self._return = self.clock.call_later(after, self.listen)
        else:
            self.listen()

    def _make_context(self) -> SSLContext | None:
        if self._tls is True:
            from .certificate import make

            context, self.certificate = make()
            return context
        return self._tls or None

    def _connect(self) -> BrokerStream:
        connection: Any = Connection("server", clock=self.clock.time, **self._options)
        stream = BrokerStream(self, connection)
        session = Session(self, stream, next(self._connections))
        stream.serve(session, self._max_message_size)
        return stream

    async def stop(self) -> None:
        """Close all connections, and listen no more.

        Raises:
            RuntimeError: it runs by another event loop.
        """
        if not self._is_running:
            return
        if asyncio.get_running_loop() is not self.loop:
            raise RuntimeError("another event loop runs the broker: restart() is for an outage")
        self._is_running = False
        self.stop_listening()
        for _ in range(ACCEPT_TURNS):
            await asyncio.sleep(0)
        self.faults.clear()
        self.close_connections()
        await asyncio.gather(*[stream.leave() for stream in self.streams])
        self.clock.stop()

    async def __aenter__(self) -> Broker:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        self._require_running()
        return self._listener.port

    def _require_running(self) -> None:
        if not self._is_running:
            raise RuntimeError("the broker does not run: enter it by `async with`, or use running_broker")

    @property
    def url(self) -> str:
        """Where it is, with the first user and virtual host."""
        return self.url_of()

    def url_of(self, user: str | None = None, virtual_host: str | None = None) -> str:
        """Return where it is, for a user and a virtual host; None for the first.

        Raises:
            ValueError: there is no such user.
            RuntimeError: the broker does not run.
        """
        name = next(iter(self.users)) if user is None else user
        host = self._names[0] if virtual_host is None else virtual_host
        if name not in self.users:
            raise ValueError(f"no user {name!r}; there are {', '.join(self.users)}")
        who = f"{quote(name, safe='')}:{quote(self.users[name].password, safe='')}"
        scheme = "amqps" if self._tls else "amqp"
        path = "" if host == "/" else quote(host, safe="")
        return f"{scheme}://{who}@127.0.0.1:{self.port}/{path}"

    # -- what tests look at

    @on_the_loop
    def queue(self, name: str, virtual_host: str | None = None) -> QueueState:
        """Return what there is to know of a queue.

        Raises:
            AmqpNotFound: there is none.
        """
        return QueueState.of(self._host(virtual_host).queue(name))

    @on_the_loop
    def queues(self, virtual_host: str | None = None) -> dict[str, QueueState]:
        """Return the queues of a virtual host by name."""
        return {name: QueueState.of(queue) for name, queue in self._host(virtual_host).queues.items()}

    @on_the_loop
    def exchanges(self, virtual_host: str | None = None) -> dict[str, ExchangeState]:
        """Return the exchanges of a virtual host by name."""
        host = self._host(virtual_host)
        return {name: ExchangeState.of(exchange, host) for name, exchange in host.exchanges.items()}

    @on_the_loop
    def bindings(self, virtual_host: str | None = None) -> list[BindingState]:
        """Return the bindings of a virtual host, without those of the default exchange."""
        return bindings_of(self._host(virtual_host).exchanges.values())

    @on_the_loop
    def consumers(self) -> list[ConsumerState]:
        """Return the consumers of all connections."""
        return [
            ConsumerState(
                each.tag, each.queue.name, session.number, channel.number, each.no_ack, each.exclusive,
                each.priority, each.held,
            )
            for session in self.sessions.values()
            for channel in session.channels.values()
            for each in channel.consumers.values()
        ]  # fmt: skip

    @on_the_loop
    def connections(self) -> list[ConnectionState]:
        """Return the connections."""
        return [session.state() for session in self.sessions.values()]

    @on_the_loop
    def published(self, **wanted: Any) -> list[Message]:
        """Return what clients have published, the oldest first.

        Args:
            wanted: attributes of `Message` and properties that it has to have, such as `exchange`, `body` or
                `message_id`. Of `headers`, those that are named; `settled` may be a state in any queue.

        Raises:
            TypeError: a name that messages do not have.
            ValueError: a value of `settled` or `confirm` that no message ever has.
        """
        return self.history.find(wanted)

    @on_the_loop
    def assert_published(self, count: int | None = None, **wanted: Any) -> list[Message]:
        """Return what clients have published, if it is as wanted.

        Args:
            count: how many messages; None for at least one.
            wanted: as for `published`.

        Raises:
            AssertionError: it is not; the text lists what was published, and in what it differs.
            TypeError, ValueError: as `published`.
        """
        return self.history.check(wanted, count)

    @on_the_loop
    def assert_queue(self, name: str, virtual_host: str | None = None, **wanted: Any) -> None:
        """Compare a queue with what is wanted of it.

        Args:
            name, virtual_host: which queue.
            wanted: fields of `QueueState`; of messages and consumers their number, of messages also bodies.

        Raises:
            AssertionError: it differs; the text says in what.
        """
        check_queue(QueueState.of(self._host(virtual_host).queue(name)), wanted)

    def _host(self, name: str | None) -> VirtualHost:
        return self.hosts[self._names[0] if name is None else name]

    # -- what tests do

    @on_the_loop
    def publish(
        self, exchange: str, routing_key: str, body: bytes, virtual_host: str | None = None, **properties: Any
    ) -> Message:
        """Publish a message as the test.

        Args:
            exchange, routing_key, body: of the message.
            virtual_host: where; None for the first.
            properties: of the message.

        Raises:
            AmqpNotFound: there is no such exchange.
        """
        host = self._host(virtual_host)
        made = self._amqp.BasicProperties(**properties)
        message = Message(exchange, routing_key, made, body, host.name)
        host.deliver(message, host.there(host.route(message, host.exchange(exchange))))
        message.returned = not message.settled
        return message

    @on_the_loop
    def add_user(
        self,
        name: str,
        password: str,
        *,
        seconds: float | None = None,
        configure: str = ALL,
        write: str = ALL,
        read: str = ALL,
    ) -> None:
        """Add a user, or change one. Who is connected keeps what there was until connection.update-secret.

        Args:
            name: of the user.
            password: or a token, which is over at a time.
            seconds: of the broker's clock from now on, after which the token is over; None for a password.
            configure, write, read: patterns of the names of exchanges and queues that the user may use so; an
                empty one is that of no name.

        Raises:
            ValueError: seconds are not more than 0, or a pattern is none.
        """
        if seconds is not None and not seconds > 0:
            raise ValueError(f"a token holds for more than 0 seconds, not for {seconds!r}")
        until = None if seconds is None else self.clock.time() + seconds
        self.users[name] = User(password, until, configure, write, read)

    @on_the_loop
    def block(self, reason: str = "low on memory") -> None:
        """Tell publishers that nothing is read, and read nothing more of those that publish."""
        if self.blocked == reason:
            return
        self.blocked = reason
        for session in list(self.sessions.values()):
            session.tell_blocked()
            if not reason:
                session.resume("blocked")

    def unblock(self) -> None:
        """Read publishers again."""
        self.block("")

    def _on_memory(self) -> None:
        """Block at once; read again only when what makes room is done."""
        if self.store.is_full:
            self.block()
        else:
            self.clock.call_soon(self._on_room)

    def _on_room(self) -> None:
        if not self.store.is_full:
            self.unblock()

    @on_the_loop
    def close_connections(self, code: int = FORCED[0], text: str = FORCED[1]) -> None:
        """Close all connections by connection.close; the broker goes on to listen.

        Args:
            code, text: as in connection.close.
        """
        for session in list(self.sessions.values()):
            session.close(code, text)

    @on_the_loop
    def reset(self) -> None:
        """Close all connections, and forget all that was declared, published and asked for; end an outage."""
        self.faults.clear()
        self.close_connections()
        for host in self.hosts.values():
            for queue in list(host.queues.values()):
                host.delete_queue(queue)
        self._begin()
        self.unblock()
        if self._is_running:  # it may be down
            self.listen()

    # -- what sessions ask

    def came(self, session: Session) -> None:
        """Keep a connection, unless it was accepted just before an outage."""
        if self._return is not None:
            session.cut_off()
        self.sessions[session.number] = session

    def ended(self, session: Session, error: Exception | None) -> None:
        """Forget a connection."""
        self.sessions.pop(session.number, None)
        if error is not None:
            self.errors.append(error)


__all__ = ["Broker"]
