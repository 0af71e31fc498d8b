# cython: nonecheck=True
"""The state of one channel, the same for the two sides. One text for both builds: channel_c is it, compiled.

A method is first judged, which changes nothing, and then applied. Both take who sent it, so that the same
rules serve for what comes and for what goes.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from .._protocol.codes import COMMAND_INVALID, NOT_ALLOWED, PRECONDITION_FAILED, RESOURCE_ERROR
from .._typing import TYPE_CHECKING, Any
from .constants import (
    CANCEL,
    CANCEL_OK,
    CHANNEL_OPEN,
    CHANNEL_OPENING,
    CLIENT,
    CONFIRM_MODE,
    CONFIRM_SELECT,
    CONSUME,
    CONSUME_OK,
    DELIVER,
    FLOW,
    GET_OK,
    OPEN_CHANNEL,
    PLAIN_MODE,
    PUBLISH,
    RECOVER,
    RECOVER_OK,
    SERVER,
    SETTLE,
    TX_COMMIT,
    TX_MODE,
    TX_ROLLBACK,
    TX_SELECT,
)
from .refusals import Refusal
from .rules_py import Rule

if TYPE_CHECKING:
    from .limits import ConnectionLimits

STATES = ("closed", "opening", "open", "closing")
SETTLED_KEPT = 64  # numbers that are settled and still in the order, beyond as many as wait


class Tags:
    """Delivery tags, or sequence numbers of publishes, of one channel that wait to be settled.

    Attributes:
        last: the highest number sent so far.
    """

    __slots__ = ("_forgotten", "_order", "_waiting", "last")

    def __init__(self) -> None:
        self.last = 0
        self._waiting: set[int] = set()
        # A heap of these, and of some that are settled already: whatever is settled in whatever order, the
        # cost of a number does not grow with how many wait.
        self._order: list[int] = []
        self._forgotten = 0  # numbers up to this one were taken back by basic.recover

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, tag: int) -> None:
        """A number is sent that waits to be settled. It does not wait yet."""
        self._waiting.add(tag)
        if tag > self.last:
            self._order.append(tag)  # the greatest may stand last in a heap
            self.last = tag
        else:
            heappush(self._order, tag)

    def skip(self, tag: int) -> None:
        """A number is sent that does not."""
        if tag > self.last:
            self.last = tag

    def count(self) -> int:
        """Send the next number, and return it."""
        tag = self.last + 1
        self.add(tag)
        return tag

    def knows(self, tag: int, multiple: bool) -> bool:
        """Return whether a number can be settled; 0 with `multiple` is all (0-9-1, basic.ack.multiple)."""
        return tag in self._waiting or (multiple and tag == 0) or 0 < tag <= self._forgotten

    def waits_for(self, tag: int) -> bool:
        """Return whether a number waits."""
        return tag in self._waiting

    def settle(self, tag: int, multiple: bool) -> tuple[int, ...]:
        """Settle a number, or all up to it; those that were waiting."""
        waiting = self._waiting
        order = self._order
        if not multiple:
            waited = len(waiting)
            waiting.discard(tag)
            if len(waiting) == waited:
                return ()
            if len(order) > 2 * len(waiting) + SETTLED_KEPT:
                self._order = sorted(waiting)
            return (tag,)
        settled = []
        while order and (order[0] <= tag or tag == 0):
            number = heappop(order)
            if number in waiting:
                waiting.remove(number)
                settled.append(number)
        return tuple(settled)

    def restore(self, tags: list[int]) -> None:
        """Numbers that were settled wait again: a transaction was rolled back."""
        for tag in tags:
            self._waiting.add(tag)
            heappush(self._order, tag)

    def forget(self) -> None:
        """Nothing waits any more: everything is taken back. Late acknowledgements are no fault."""
        self._forgotten = self.last
        self._waiting.clear()
        self._order.clear()

    def waiting(self) -> tuple[int, ...]:
        """The numbers that wait, in order."""
        return tuple(sorted(self._waiting))


class Channel:
    """One channel.

    Attributes:
        number: channel number; 0 for the connection itself.
        state: one of `constants`.
        closing: what the channel was closed with by this side.
        crossed: what the peer closed it with meanwhile.
        consumers: by consumer tag, whether its deliveries need no acknowledgement.
        deliveries: delivery tags that the client has not settled.
        publishes: sequence numbers that the server has not confirmed.
    """

    __slots__ = (
        "_asked", "_leaving", "_limits", "_mode", "_most_deliveries", "_pending", "_role", "_stopped",
        "_uncommitted", "_withdrawn", "closing", "consumers", "crossed", "deliveries", "number", "publishes",
        "state",
    )  # fmt: skip

    def __init__(self, number: int, role: int, limits: ConnectionLimits) -> None:
        self.number = number
        self._role = role
        self.state = CHANNEL_OPENING
        self.closing: Any = None
        self.crossed: Any = None
        self.deliveries = Tags()
        self.publishes = Tags()
        self._limits = limits
        self._most_deliveries = limits.unacknowledged
        self._mode = PLAIN_MODE
        # Requests that wait for their reply, by who sent them.
        self._pending: tuple[deque[tuple[Rule, Any]], deque[tuple[Rule, Any]]] = (deque(), deque())
        self._stopped = 0  # bit by role: told by channel.flow to send no content
        self.consumers: dict[Any, bool] = {}
        self._asked: set[Any] = set()  # consumer tags that wait for consume-ok
        self._leaving: dict[Any, bool] = {}  # consumers cancelled, whose deliveries may be on their way
        self._withdrawn: set[Any] = set()  # consumers asked for and cancelled before the reply
        self._uncommitted: list[int] = []  # settled in the transaction that is open

    def fault(self, sender: int, rule: Rule, method: Any) -> Refusal | None:
        """Why a side may not send a method now, or None."""
        if self.state == CHANNEL_OPENING and sender == SERVER and not rule.is_reply:
            return Refusal(COMMAND_INVALID, f"{rule.name} before channel {self.number} is open")
        if rule.strict and self._request(sender, rule, method) is None:
            return Refusal(COMMAND_INVALID, f"{rule.name} answers no request that waits for it")
        kind = rule.kind
        if kind == SETTLE:
            return self._settle_fault(sender, rule, method)
        if kind in (TX_SELECT, TX_COMMIT, TX_ROLLBACK, CONFIRM_SELECT):
            return self._mode_fault(rule)
        if kind == CONSUME and method.consumer_tag and self._is_taken(method.consumer_tag):
            return Refusal(NOT_ALLOWED, f"attempt to reuse consumer tag '{method.consumer_tag}'")
        if sender == self._role:
            return self._own_fault(rule, method)
        if kind == DELIVER or kind == GET_OK:  # noqa: SIM109, a tuple takes longer
            tag = rule.delivery_tag(method)
            return None if tag > self.deliveries.last else self._tag_fault(tag)
        if rule.replies and len(self._pending[sender]) >= self._limits.requests:
            return Refusal(RESOURCE_ERROR, f"{self._limits.requests} requests wait on channel {self.number}")
        if kind == CONSUME and len(self.consumers) + len(self._asked) >= self._limits.consumers:
            return Refusal(RESOURCE_ERROR, f"{self._limits.consumers} consumers on channel {self.number}")
        return None

    def opens(self, rule: Rule) -> bool:
        """Return whether a method answers the request to open the channel, which waits first of all."""
        waiting: Rule = self._pending[CLIENT][0][0]
        return rule.index in waiting.replies

    def _is_taken(self, consumer_tag: Any) -> bool:
        """Return whether a consumer has a tag, or is being asked for with it."""
        return consumer_tag in self.consumers or consumer_tag in self._asked

    def _own_fault(self, rule: Rule, method: Any) -> Refusal | None:
        """Return the fault that this side alone can know of, better than its peer."""
        if rule.content and self._stopped >> self._role & 1 and rule.kind != GET_OK:
            return Refusal(COMMAND_INVALID, f"{rule.name} while the peer wants no content on this channel")
        to_consumer = rule.kind == DELIVER or (rule.kind == CANCEL and self._role == SERVER)
        if to_consumer and not (rule.consumer_tag(method) in self.consumers or "" in self.consumers):
            return Refusal(COMMAND_INVALID, f"{rule.name} to no consumer: '{method.consumer_tag}'")
        if rule.kind in (DELIVER, GET_OK):
            last = self.deliveries.last
            if rule.delivery_tag(method) <= last:
                return Refusal(COMMAND_INVALID, f"delivery tag {method.delivery_tag} after {last}")
            if len(self.deliveries) >= self._most_deliveries:
                return Refusal(PRECONDITION_FAILED, f"{len(self.deliveries)} deliveries are not acknowledged")
        return None

    def _tag_fault(self, tag: int) -> Refusal | None:
        """Return the fault of a delivery whose tag is not higher than those before it."""
        if tag == 0:
            return Refusal(COMMAND_INVALID, "delivery tag 0 is of no delivery")
        if self.deliveries.waits_for(tag):
            return Refusal(COMMAND_INVALID, f"delivery tag {tag} comes a second time, and is not settled yet")
        return None

    def _settle_fault(self, sender: int, rule: Rule, method: Any) -> Refusal | None:
        tag = rule.delivery_tag(method)
        multiple = rule.multiple(method)
        if sender == CLIENT:
            if self.deliveries.knows(tag, multiple):
                return None
        elif self._mode != CONFIRM_MODE:
            return Refusal(COMMAND_INVALID, f"{rule.name} on a channel that is not in confirm mode")
        elif 0 < tag <= self.publishes.last or (multiple and tag == 0):
            return None
        return Refusal(PRECONDITION_FAILED, f"unknown delivery tag {tag}")

    def _mode_fault(self, rule: Rule) -> Refusal | None:
        if rule.kind == TX_SELECT and self._mode == CONFIRM_MODE:
            return Refusal(PRECONDITION_FAILED, "cannot switch from confirm to tx mode")
        if rule.kind == CONFIRM_SELECT and self._mode == TX_MODE:
            return Refusal(PRECONDITION_FAILED, "cannot switch from tx to confirm mode")
        if rule.kind in (TX_COMMIT, TX_ROLLBACK) and self._mode != TX_MODE:
            return Refusal(PRECONDITION_FAILED, "channel is not transactional")
        return None

    def apply(self, sender: int, rule: Rule, method: Any) -> Any:
        """Change the state as a method says; the request that it answers, or None."""
        request = self._reply(sender, rule, method) if rule.is_reply else None
        answered = rule.kind == FLOW and sender != self._role  # by the connection, at once
        if rule.replies and rule.waits(method) and not answered:
            self._pending[sender].append((rule, method))
        if rule.kind:
            self._apply_kind(sender, rule, method, request)
        return request

    def _request(self, sender: int, rule: Rule, method: Any) -> Any:
        """The oldest request that a reply may answer; of those about consumers, the one with its tag.

        This side answers in order. RabbitMQ does not quite: its consume-ok comes from the queue, and the
        replies to requests pipelined after it may come first. Only channel.open is always answered first.
        """
        ours = sender == self._role
        tag: Any = None
        if rule.kind == CANCEL_OK:
            tag = method.consumer_tag
        elif rule.kind == CONSUME_OK:  # a tag that nobody asked for was left to the server to choose
            tag = method.consumer_tag if method.consumer_tag in self._asked else ""
        for entry in self._pending[1 - sender]:
            waiting: Rule = entry[0]
            if rule.index in waiting.replies and (tag is None or entry[1].consumer_tag == tag):
                return entry
            if rule.ordered and waiting.synchronous and (ours or waiting.kind == OPEN_CHANNEL):
                return None
        return None

    def _reply(self, sender: int, rule: Rule, method: Any) -> Any:
        """Take the request that a reply answers from those that wait."""
        entry = self._request(sender, rule, method)
        if entry is None:
            return None
        pending = self._pending[1 - sender]
        if pending[0] is entry:
            pending.popleft()
        else:
            pending.remove(entry)
        waiting: Rule = entry[0]
        if waiting.kind == OPEN_CHANNEL:
            self.state = CHANNEL_OPEN
        return entry[1]

    def _apply_kind(self, sender: int, rule: Rule, method: Any, request: Any) -> None:
        kind = rule.kind
        if kind == PUBLISH:
            if self._mode == CONFIRM_MODE:
                self.publishes.count()
        elif kind == DELIVER:
            self._deliver(rule.delivery_tag(method), self._needs_no_ack(rule.consumer_tag(method)))
        elif kind == GET_OK:
            self._deliver(rule.delivery_tag(method), request is not None and bool(request.no_ack))
        elif kind in (CONSUME, CONSUME_OK, CANCEL, CANCEL_OK):
            self._apply_consumer(sender, rule, method, request)
        elif kind == RECOVER_OK or (kind == RECOVER and not rule.replies):
            self.deliveries.forget()
        elif kind == FLOW:
            bit = 1 << (1 - sender)
            self._stopped = self._stopped & ~bit if method.active else self._stopped | bit
        elif kind == CONFIRM_SELECT:
            self._mode = CONFIRM_MODE
        elif kind == TX_SELECT:
            self._mode = TX_MODE
        elif kind in (TX_COMMIT, TX_ROLLBACK):
            if kind == TX_ROLLBACK:
                self.deliveries.restore(self._uncommitted)
            self._uncommitted.clear()

    def is_stray(self, rule: Rule, method: Any) -> bool:
        """Return whether a delivery is to no consumer that the server has said is there."""
        if rule.kind != DELIVER or "" in self.consumers:
            return False
        tag = rule.consumer_tag(method)
        return tag not in self.consumers and tag not in self._leaving

    def _needs_no_ack(self, consumer_tag: Any) -> bool:
        """Return whether the deliveries of a consumer need no acknowledgement."""
        no_ack = self.consumers.get(consumer_tag)
        if no_ack is None and self._leaving:
            no_ack = self._leaving.get(consumer_tag)
        if no_ack is None:  # of a client that let the server choose, and did not wait
            return self.consumers.get("", False)
        return no_ack

    def _deliver(self, tag: int, no_ack: bool) -> None:
        if no_ack:
            self.deliveries.skip(tag)
        else:
            self.deliveries.add(tag)

    def _apply_consumer(self, sender: int, rule: Rule, method: Any, request: Any) -> None:
        """Consumers come and go: what matters of them is whether their deliveries are acknowledged."""
        kind = rule.kind
        if kind == CONSUME:
            if not rule.waits(method):
                self.consumers[method.consumer_tag] = bool(method.no_ack)
            elif method.consumer_tag:
                self._asked.add(method.consumer_tag)
        elif kind == CONSUME_OK:
            self._asked.discard(request.consumer_tag)
            self._add_consumer(method.consumer_tag, bool(request.no_ack))
        elif kind == CANCEL_OK:
            self.consumers.pop(request.consumer_tag, None)
        elif sender == SERVER:
            self.consumers.pop(method.consumer_tag, None)
        elif not rule.waits(method):
            self._cancel(method.consumer_tag)

    def _add_consumer(self, tag: Any, no_ack: bool) -> None:
        """A consumer is there, unless it was cancelled meanwhile."""
        if tag in self._withdrawn:
            self._withdrawn.remove(tag)
            self._leave(tag, no_ack)
        else:
            self.consumers[tag] = no_ack

    def _cancel(self, tag: Any) -> None:
        """The client cancels a consumer, and does not wait for the reply."""
        if tag not in self.consumers:
            if tag in self._asked:
                self._withdrawn.add(tag)
        else:
            self._leave(tag, self.consumers.pop(tag))

    def _leave(self, tag: Any, no_ack: bool) -> None:
        """A consumer is cancelled without a reply: a client may still receive what is on its way.

        Nothing says when the last of that has come, so that the oldest of many such consumers are forgotten.
        """
        if self._role == CLIENT:
            self._leaving.pop(tag, None)
            self._leaving[tag] = no_ack
            if len(self._leaving) > self._limits.consumers:
                del self._leaving[next(iter(self._leaving))]

    def settle(self, sender: int, rule: Rule, method: Any) -> tuple[int, ...]:
        """Apply a method that settles; the numbers that it settles."""
        tag, multiple = rule.delivery_tag(method), rule.multiple(method)
        if sender == SERVER:
            return self.publishes.settle(tag, multiple)
        tags = self.deliveries.settle(tag, multiple)
        if self._mode == TX_MODE:
            self._uncommitted.extend(tags)
        return tags

    def sequence_number(self, rule: Rule) -> int | None:
        """The number of the publish just applied, or None if publishes are not confirmed."""
        return self.publishes.last if rule.kind == PUBLISH and self._mode == CONFIRM_MODE else None

    def waiting(self, sender: int) -> tuple[Any, ...]:
        """The requests of a side that wait for their reply, oldest first."""
        return tuple([method for _, method in self._pending[sender]])

    def end(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[Any, ...]]:
        """Return what is open, now that the channel ends: publishes, deliveries and requests of this side."""
        self.deliveries.restore(self._uncommitted)  # what was settled in a transaction is void
        return self.publishes.waiting(), self.deliveries.waiting(), self.waiting(self._role)


__all__ = ["STATES", "Channel", "Tags"]
