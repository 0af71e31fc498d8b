"""A channel as its client sees it: opened on one connection after the other, with all that is on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Any

from ..errors import AmqpError, ConnectionLostError, LocalProtocolError
from .blame import awaited, may_pass, sent_by
from .calls import Calls, no_answer
from .connecting import in_time, reply_error
from .counters import LASTING_SECONDS, Backoff
from .deliveries import Consumer, Delivery, Kept, Unsettled, count_dropped, give_back
from .failures import LateError
from .link import Link, in_set_up
from .publishes import Publish, Publishes

if TYPE_CHECKING:
    from ..connection import ChannelClosed, ConnectionClosed
    from .client import Client

log = logging.getLogger("amqpcodec.aio")


class Opened:
    """The state of a channel, which its client opens, and to which its connection hands what comes.

    Programs hold channels, so that the names are private. `Channel` has what programs call.
    """

    def __init__(
        self,
        client: Client,
        *,
        window: int = 1,
        prefetch: int = 0,
        confirm: bool = False,
        republish: bool = True,
        reopen: int = 0,
    ) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._basic = client._dialect.Basic
        self._stats = client._stats
        self._setup = [client._dialect.Basic.Qos(prefetch_count=prefetch)] if prefetch else []
        if confirm:
            self._setup.append(client._dialect.Confirm.Select())
        self._publishes = Publishes(window, republish, client._stats, client._headers())
        self._calls = Calls()
        self._opened_by = in_set_up()
        self._waits: Iterator[float] | None = None  # before it is opened again, which the broker has closed
        self._reopen = reopen
        self._closings = 0  # by the broker, in a row
        self._opened_at = 0.0
        self._consumers: dict[str, Consumer] = {}
        self._kept = Kept(client._stats)
        self._unsettled: Unsettled | None = None
        self._recovering = 0  # how many basic.recover have no answer yet
        self._link: Link | None = None
        self._number = 0
        self._error: Exception | None = None
        self._before_publish = client._before_publish

    async def _call(self, method: Any, late: LateError) -> Any:
        await self._client._until_ready(self)
        reply = self._request(method)
        late.was_sent = True
        return await reply

    def _request(self, method: Any) -> asyncio.Future[Any]:
        """Send a request; return the future of its reply."""
        self._flush()  # what was acknowledged before is sent before
        if self._link is None:
            raise self._error or ConnectionLostError("there is no connection")
        reply = self._calls.send(self._link, self._number, method)
        self._sent(method.spec.name)
        return reply

    def _sent(self, name: str) -> None:
        """Take note of a request: the broker acts on it before it reads later acknowledgements."""
        assert self._unsettled is not None  # there is a connection
        if name == "basic.recover":
            self._recovering += 1
            self._forget_deliveries()
        elif name.startswith("tx."):
            self._unsettled.transact(name)

    # -- consumers

    async def _start(self, consumer: Consumer) -> None:
        """Have the broker deliver to a consumer."""
        await self._client._until_ready(self)
        while (other := self._consumers.get(consumer.tag)) is not None:
            if not other.has_left:
                raise LocalProtocolError(f"there is a consumer {consumer.tag!r} on this channel")
            await other.gone.wait()
            await self._client._until_ready(self)
        self._flush()
        self._ask(consumer)
        self._consumers[consumer.tag] = consumer
        if not consumer.method.no_ack:
            for delivery in self._kept.take(consumer.method.queue):
                consumer.put(delivery)
        try:
            await consumer.started
        except BaseException as error:
            await self._cancel(consumer, at_once=not isinstance(error, Exception))
            raise

    def _ask(self, consumer: Consumer) -> None:
        """Send a consumer's request."""
        if self._link is None:
            raise self._error or ConnectionLostError("there is no connection")
        consumer.go_on()
        self._link.connection.send(self._number, consumer.method)
        consumer.asked(self._link)

    async def _cancel(self, consumer: Consumer, *, at_once: bool) -> None:
        """Have the broker deliver no more to a consumer, which may be over; wait for the answer, or not."""
        consumer.has_left = True
        reply = None
        if self._consumers.get(consumer.tag) is consumer:
            link = self._link
            if link is None or consumer.link is not link:  # or not there yet
                del self._consumers[consumer.tag]
            else:
                try:
                    reply = self._request(self._basic.Cancel(consumer.tag))
                except AmqpError as error:  # the broker does not read
                    link.drop(ConnectionLostError(f"basic.cancel cannot be sent: {error}"))
        # After the request: else the broker delivers them to this consumer once more.
        consumer.give_back()
        if reply is None:
            consumer.finish()
        elif at_once:
            reply.cancel()
        else:
            seconds = self._client._close_seconds
            late = no_answer("basic.cancel", seconds)
            late.was_sent = True
            try:
                await in_time(reply, seconds, late)
            except TimeoutError as error:  # the broker reads nothing, under a memory alarm say
                log.warning("consumer %r is left: %s", consumer.tag, error)
            except AmqpError:
                pass  # the consumer is gone in any case

    def _give_back_got(self, request: Any, delivery: Delivery) -> None:
        """Return an unread message of basic.get to its queue, or count it."""
        if request.no_ack:
            count_dropped(self._stats, 1)
        else:
            self._give_back(request, (delivery,))

    def _give_back(self, request: Any, unread: Iterable[Delivery]) -> None:
        """Return unread deliveries to the queue of a request.

        Those that it would drop are kept for its next consumer on this channel.
        """
        if self._link is not None and self._link.counts_returns and request.queue:
            unread = self._kept.keep(request.queue, unread)
        give_back(unread)

    # -- called by the client and its connection

    def _refuse(self, error: Exception) -> None:
        """Take nothing new; what waits for a reply, or for room, raises the error."""
        self._error = error
        self._publishes.refuse(error)
        self._calls.fail(error)
        self._client._look_again()

    def _drain(self, error: Exception) -> None:
        """Take nothing new of the program, since the client is closed; `on_connect` may go on."""
        if self._opened_by is None or not self._opened_by.sets_up:
            self._publishes.refuse(error)
        if self._link is None or self._link.is_set_up:
            self._calls.fail(error)

    def _end(self, error: Exception) -> None:
        """Close the channel at once."""
        self._give_all_back()
        link, number = self._link, self._number
        self._fail(error)
        if link is not None:
            link.send(number, link.connection.dialect.Channel.Close(200))

    def _give_all_back(self) -> None:
        """Return what is unread, before the channel is closed: quorum queues count that as a failure."""
        self._flush()
        for consumer in list(self._consumers.values()):
            if self._link is not None and self._link is consumer.link and not consumer.method.no_ack:
                if not consumer.has_left:
                    self._link.send(self._number, self._basic.Cancel(consumer.tag, True))
                consumer.give_back()

    def _next_wait(self, backoff: Backoff) -> float | None:
        """Return the seconds until the channel is opened again, or None where that was tried often enough."""
        if self._waits is None:
            self._waits = backoff.waits()
        return next(self._waits, None)

    def _has_open_calls(self) -> bool:
        """Return whether the broker may say something yet to a call, which may be over for its caller."""
        return len(self._calls) > 0

    def _open(self, link: Link) -> None:
        """Open the channel on a connection; messages and consumers wait for `_resume`.

        Raises:
            LocalProtocolError: all channels of the connection are in use.
        """
        self._number = link.connection.open_channel()
        self._link = link
        self._opened_at = self._loop.time()
        link.channels[self._number] = self
        self._unsettled = Unsettled(link, self._number, self._stats)
        self._recovering = 0
        for method in self._setup:
            link.connection.send(self._number, method)

    def _resume(self) -> None:
        """Go on with messages and consumers: the connection is set up."""
        if self._link is None:
            return
        for consumer in self._consumers.values():
            if consumer.link is None:
                self._ask(consumer)
        self._publishes.resume(self._link, self._number)

    def _send_alone(self, is_suspect: Callable[[object], bool]) -> Iterator[tuple[Any, asyncio.Future[None]]]:
        """Send one after the other, before `_resume`, what a broker may end connections for; yield each."""
        for consumer in list(self._consumers.values()):
            if self._link is not None and is_suspect(consumer):
                self._ask(consumer)
                yield consumer, consumer.started
        # The channel may be closed for one of them.
        while self._link is not None and (first := self._publishes.first()) and is_suspect(first):
            self._publishes.send_first(self._link, self._number)
            yield first, first.confirmed

    def _unanswered(self, closed: ConnectionClosed) -> list[tuple[Any, Any]]:
        """Return what the broker has not answered, as `Blame.ended` takes it."""
        consumers = {id(each.method): each for each in self._consumers.values()}
        requests = [each for each in awaited(closed, self._number) if each not in self._setup]
        return [
            *((consumers.get(id(request)), request) for request in requests),
            *self._publishes.unanswered(),
        ]

    def _give_up(self, thing: Publish | Consumer, error: Exception) -> None:
        """Send a message or consumer no more."""
        if isinstance(thing, Publish):
            self._publishes.give_up(thing, error)
        else:
            self._remove(thing.tag)
            thing.end(error)

    def _on_closed(self, event: ChannelClosed) -> None:
        """Take the end of the channel, by the broker."""
        error = reply_error(event.reply_code, event.reply_text, event.class_id, event.method_id)
        if may_pass(error) and self._comes_back_to_queue():
            self._client._open_later(self, error)
        elif self._may_reopen():
            self._give_up_refused(event, error)
            self._client._open_later(self, error, republish=False)
        else:
            self._fail(error)

    def _may_reopen(self) -> bool:
        """Return whether the channel is to be opened again, which has not been closed too often in a row."""
        if self._loop.time() - self._opened_at > LASTING_SECONDS:
            self._closings, self._waits = 0, None
        self._closings += 1
        return self._closings <= self._reopen and self._link is not None and self._link.is_set_up

    def _give_up_refused(self, event: ChannelClosed, error: Exception) -> None:
        """End the consumer for which the broker has closed the channel: the first that has no answer."""
        for consumer in self._consumers.values():
            if not consumer.started.done() and sent_by(event, consumer.method):
                self._give_up(consumer, error)
                return

    def _comes_back_to_queue(self) -> bool:
        """Return whether an exclusive consumer of before is not answered yet.

        The broker may refuse it, until it misses the client's last connection.
        """
        return any(
            consumer.asks > 1 and consumer.method.exclusive and not consumer.started.done()
            for consumer in self._consumers.values()
        )

    def _is_ready(self, link: Link) -> bool:
        """Return whether calls may be sent; not before consumers are there for which it may be closed."""
        return self._link is link and not self._comes_back_to_queue()

    def _lost(
        self, error: Exception, closed: ConnectionClosed | None = None, *, republish: bool = True
    ) -> None:
        """Wait for another connection: this one is over, or the channel."""
        link, self._link = self._link, None
        self._forget_deliveries()
        for consumer in list(self._consumers.values()):
            if consumer.has_left:
                self._remove(consumer.tag)
            elif link is not None and link.sets_up and consumer.link is link and not consumer.started.done():
                self._remove(consumer.tag)
                consumer.end(error)
            consumer.link = None
        self._publishes.lost(error, republish)
        self._calls.fail(error, closed)

    def _fail(self, error: Exception) -> None:
        """Be closed for good: everybody is told."""
        if not self._client._forget(self):
            return
        if self._link is not None:
            self._link.channels.pop(self._number, None)
            self._link = None
        self._forget_deliveries()
        self._refuse(error)
        self._publishes.fail(error)
        for tag in list(self._consumers):
            if (consumer := self._remove(tag)) is not None:
                consumer.end(error)

    def _remove(self, tag: str) -> Consumer | None:
        """Know no more of a consumer, to which the broker delivers no more; return it."""
        consumer = self._consumers.pop(tag, None)
        if consumer is not None:
            consumer.finish()
        return consumer

    def _flush(self) -> None:
        """Send the acknowledgements of this turn."""
        if self._unsettled is not None:
            self._unsettled.flush()

    def _on_message(self, event: Any) -> None:
        """Take a delivery, a returned message, or the answer to basic.get."""
        _, method, properties, body, request, _ = event
        basic, unsettled = self._basic, self._unsettled
        assert unsettled is not None  # there is a connection
        if type(method) is basic.Deliver:
            consumer = self._consumers.get(method.consumer_tag)
            if consumer is None:
                self._take_stray(unsettled.delivery(method, properties, body, False, Delivery))
                return
            no_ack = consumer.method.no_ack
            consumer.put(unsettled.delivery(method, properties, body, no_ack, consumer.kind))
        elif type(method) is basic.Return:
            self._publishes.returned(method, properties, body)
        elif type(method) is basic.GetOk:
            delivery = unsettled.delivery(method, properties, body, request.no_ack, Delivery)
            if not self._calls.answered(request, delivery):
                self._give_back_got(request, delivery)

    def _take_stray(self, delivery: Delivery) -> None:
        """Return a delivery to no consumer, of which the broker would wait for an acknowledgement."""
        self._stats.stray += 1
        log.warning("a delivery to no consumer goes back: %r", delivery.method)
        give_back((delivery,))

    def _on_reply(self, request: Any, reply: Any) -> None:
        """Take the reply to a request."""
        name = request.spec.name
        consumer = self._consumers.get(getattr(request, "consumer_tag", ""))
        if name == "basic.consume" and consumer is not None:
            consumer.begun()
            self._waits = None
            self._client._look_again()
        elif name == "basic.cancel":
            # Another one may be there by now, if the broker has cancelled this one as well.
            if consumer is not None and consumer.has_left:
                self._remove(request.consumer_tag)
        elif name == "basic.recover" and self._link is not None and self._unsettled is not None:
            self._recovering -= 1
            self._forget_deliveries()  # what has come meanwhile was taken back, too
            if not self._recovering:
                uncommitted = self._unsettled.uncommitted
                self._unsettled = Unsettled(self._link, self._number, self._stats, uncommitted)
        self._calls.answered(request, reply)

    def _forget_deliveries(self) -> None:
        """Forget all deliveries that are not settled: they come again."""
        if self._unsettled is not None:
            self._unsettled.forget()
        for consumer in self._consumers.values():
            consumer.forget_unread()
        self._kept.forget()

    def _on_settled(self, event: Any) -> None:
        """Take the confirms of publishes, or their refusals."""
        _, method, numbers = event
        self._publishes.settled(numbers, type(method) is self._basic.Ack)

    def _on_flow(self, active: bool) -> None:
        """Stop publishing, or go on: channel.flow."""
        self._publishes.flow(active)

    def _on_cancel(self, method: Any) -> None:
        """Take the end of a consumer: the broker has cancelled it.

        A quorum queue of RabbitMQ 4.3 that cancels one for its delay delivers to it again after a late
        acknowledgement, until it is cancelled from this side, too.
        """
        consumer = self._remove(method.consumer_tag)
        if consumer is not None:
            consumer.end_by_broker()
        if self._link is not None:
            self._link.send(self._number, self._basic.Cancel(method.consumer_tag, True))


__all__ = ["Opened"]
