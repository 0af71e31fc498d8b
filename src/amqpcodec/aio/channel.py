"""A channel of a client: calls, publishes and consumers, on one connection after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from threading import get_ident
from typing import Any

from ..errors import LocalProtocolError
from .calls import answer_to, call_name, no_answer
from .connecting import in_time
from .deliveries import Consumer, Delivery
from .failures import LateError, certainty
from .link import elsewhere
from .opened import Opened
from .publishes import Publish, octets_of

REPLY_ADDRESS = "amq.rabbitmq.reply-to."  # as those of direct replies begin


def _is_reply(routing_key: Any) -> bool:
    """Return whether a message goes to who waits for a direct reply; what is no text is refused later."""
    return isinstance(routing_key, str) and routing_key.startswith(REPLY_ADDRESS)


class Channel(Opened):
    """A channel, which is opened again on each new connection; `Client.channel` makes one.

    A channel that the broker closes, by 404 not-found say, is not opened again, unless it was made so. Then
    everything that waits on it raises the error of that code, and so does what is asked of it later.
    """

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        await self.close(None if kind is None else 0)

    # -- calls

    async def call(self, method: Any, *, timeout: float | None = None) -> Any:
        """Send a request, and return its reply.

        Args:
            method: a method that has one, such as queue.declare. With ``no_wait`` there is none.
            timeout: seconds for the reply, and for a connection while there is none; None for any time.

        Returns:
            The method that answers it; None with ``no_wait``.

        Raises:
            ReplyError: the broker closes the channel or connection instead: of the class for its code.
            ConnectionLostError: the connection was lost before the reply. The broker may have acted on it.
            LateError: there was no reply in time.
            EncodeError, LocalProtocolError: it cannot be sent.
        """
        late = no_answer(call_name(method), timeout)
        return await answer_to(self._call(method, late), timeout, late)

    # -- publishing

    async def publish(
        self,
        body: Any,
        *,
        exchange: str = "",
        routing_key: str = "",
        properties: Any = None,
        mandatory: bool | None = None,
        timeout: float | None = None,
    ) -> None:
        """Publish a message, and wait until the broker has it.

        A message that no one waits for any more is not written, if it was not before. The text of the
        CancelledError says which it is, as does `LateError`.

        Args:
            body: bytes-like. Any but `bytes` is copied at once. The properties may not be changed until
                the broker has the message.
            exchange, routing_key: where to.
            properties: of class basic; None for none.
            mandatory: whether the broker returns the message where no queue takes it. None for True, except
                for a direct reply (``amq.rabbitmq.reply-to.`` and so on): RabbitMQ delivers and returns it.
            timeout: seconds for all of it, also while there is no connection; None for any time.

        Raises:
            LateError: the broker has not confirmed it in time.
            ReturnedError: no queue takes it.
            NackedError: the broker has not taken it.
            ReplyError: the broker has closed the channel.
            ConnectionLostError: the client was closed before, or the connection was lost on a channel that
                does not publish again.
            EncodeError: a value that its field cannot carry, or a body that is not bytes-like.
        """
        publish = self._message(body, exchange, routing_key, properties, mandatory)
        self._publishes.put(publish)
        try:
            if timeout is None:
                await publish.confirmed
            else:
                late = no_answer("basic.publish", timeout)
                await in_time(publish.confirmed, timeout, late)
        except LateError:
            if not publish.confirmed.cancelled():
                return publish.confirmed.result()  # it has come in this turn
            late.was_sent = self._publishes.cancelled(publish)
            raise
        except asyncio.CancelledError:
            if publish.confirmed.done() and not publish.confirmed.cancelled():
                publish.confirmed.exception()  # of this turn: no one else asks for it
            raise asyncio.CancelledError(certainty(self._publishes.cancelled(publish))) from None

    async def publish_soon(
        self,
        body: Any,
        *,
        exchange: str = "",
        routing_key: str = "",
        properties: Any = None,
        mandatory: bool | None = None,
    ) -> asyncio.Future[None]:
        """Publish a message, and wait only while the window is full.

        Args:
            body, exchange, routing_key, properties, mandatory: as for `publish`.

        Returns:
            A future that ends as `publish` would. To cancel it before the message is written takes the
            message back.

        Raises:
            ReplyError, ConnectionLostError, EncodeError: as `publish`, where it is known at once.
        """
        publish = self._message(body, exchange, routing_key, properties, mandatory)
        if self._publishes.is_full():
            await self._publishes.room()
        self._publishes.put(publish)
        return publish.confirmed

    def _message(
        self, body: Any, exchange: str, routing_key: str, properties: Any, mandatory: bool | None
    ) -> Publish:
        """Return a message that is not on its way yet, from the arguments of `publish`."""
        if get_ident() != self._thread:  # quicker than to ask for the loop
            raise elsewhere()
        if type(body) is not bytes:
            body = octets_of(body)
        if mandatory is None:
            mandatory = bool(exchange) or not _is_reply(routing_key)
        method = self._basic.Publish(exchange=exchange, routing_key=routing_key, mandatory=mandatory)
        if self._before_publish is not None:
            properties = self._before_publish(method, properties)
        return Publish(self._loop.create_future(), method, properties, body)

    # -- consuming

    def consume(
        self,
        queue: str,
        *,
        consumer_tag: str = "",
        no_ack: bool = False,
        exclusive: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> Consumer:
        """Return a consumer of a queue, to be entered with ``async with``.

        It goes on after a lost connection: deliveries that were not settled come again, flagged
        ``redelivered``.

        Args:
            queue: its name.
            consumer_tag: a name for the consumer; empty for one that the client chooses.
            no_ack: whether deliveries count as acknowledged; those that nobody reads are lost then.
            exclusive: whether nobody else may consume from the queue.
            arguments: such as ``x-priority``.
        """
        tag = consumer_tag or self._client._next_consumer_tag()
        method = self._basic.Consume(queue=queue, consumer_tag=tag, no_ack=no_ack, exclusive=exclusive)
        if arguments is not None:
            method.arguments = arguments
        return Consumer(self, method, self._client._around_delivery)

    async def get(self, queue: str, *, no_ack: bool = False, timeout: float | None = None) -> Delivery | None:
        """Fetch one message of a queue.

        Args:
            queue: its name.
            no_ack: whether it counts as acknowledged.
            timeout: as for `call`.

        Returns:
            The message, to be settled; None where the queue is empty. One that the channel has kept comes
            first, with the basic.deliver that it came by.

        Raises:
            ReplyError, ConnectionLostError, LateError: as `call`.
        """
        request = self._basic.Get(queue=queue, no_ack=no_ack)
        late = no_answer("basic.get", timeout)
        reply = await answer_to(self._get(request, late), timeout, late)
        return reply if isinstance(reply, Delivery) else None

    async def _get(self, request: Any, late: LateError) -> Any:
        await self._client._until_ready(self)
        if not request.no_ack and (kept := self._kept.take_first(request.queue)) is not None:
            return kept
        reply = self._request(request)
        late.was_sent = True
        try:
            return await reply
        except asyncio.CancelledError:
            has_come = reply.done() and not reply.cancelled() and reply.exception() is None
            if has_come and isinstance(reply.result(), Delivery):
                self._give_back_got(request, reply.result())
            raise

    # -- ending

    async def close(self, timeout: float | None = None) -> None:
        """Close the channel, once all is confirmed that was published. Nothing new is taken.

        Args:
            timeout: seconds to wait for that; None for the client's `close_seconds`.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise elsewhere()
        if self not in self._client._channels:
            return
        error = self._error  # which it has where another task is closing it
        if error is None:
            error = self._client._error or LocalProtocolError("the channel is closed")
            self._refuse(error)
        try:
            if waiting := self._publishes.outstanding():
                await asyncio.wait(waiting, timeout=self._client._seconds_to_close(timeout))
        finally:
            self._end(error)


__all__ = ["Channel"]
