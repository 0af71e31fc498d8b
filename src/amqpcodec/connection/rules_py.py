# cython: nonecheck=True
"""Who may send what, and what answers what: tables made of a dialect's generated facts.

One text for both builds: rules_c is this file, compiled. Written by hand is only what the specifications say
in prose: which methods change the state of a channel, and how (`_KINDS`).
"""

from __future__ import annotations

from functools import cache

from .._typing import PURE, TYPE_CHECKING, Any
from .constants import (
    BLOCKED,
    CANCEL,
    CANCEL_OK,
    CLIENT,
    CLOSE,
    CLOSE_OK,
    CONFIRM_SELECT,
    CONSUME,
    CONSUME_OK,
    DELIVER,
    FLOW,
    GET_OK,
    HANDSHAKE,
    OPEN_CHANNEL,
    ORDINARY,
    PUBLISH,
    RECOVER,
    RECOVER_OK,
    SERVER,
    SETTLE,
    TX_COMMIT,
    TX_ROLLBACK,
    TX_SELECT,
    UNBLOCKED,
)

if TYPE_CHECKING:
    from .._kernel.dialect_py import Dialect
    from ..spec import MethodSpec

ROLES = ("client", "server")

_KINDS = {
    "connection.start": HANDSHAKE,
    "connection.start-ok": HANDSHAKE,
    "connection.secure": HANDSHAKE,
    "connection.secure-ok": HANDSHAKE,
    "connection.tune": HANDSHAKE,
    "connection.tune-ok": HANDSHAKE,
    "connection.open": HANDSHAKE,
    "connection.open-ok": HANDSHAKE,
    "connection.redirect": HANDSHAKE,
    "connection.close": CLOSE,
    "connection.close-ok": CLOSE_OK,
    "connection.blocked": BLOCKED,
    "connection.unblocked": UNBLOCKED,
    "channel.open": OPEN_CHANNEL,
    "channel.resume": OPEN_CHANNEL,
    "channel.close": CLOSE,
    "channel.close-ok": CLOSE_OK,
    "channel.flow": FLOW,
    "basic.publish": PUBLISH,
    "basic.deliver": DELIVER,
    "basic.get-ok": GET_OK,
    "basic.ack": SETTLE,
    "basic.nack": SETTLE,
    "basic.reject": SETTLE,
    "basic.consume": CONSUME,
    "basic.consume-ok": CONSUME_OK,
    "basic.cancel": CANCEL,
    "basic.cancel-ok": CANCEL_OK,
    "basic.recover": RECOVER,
    "basic.recover-async": RECOVER,
    "basic.recover-ok": RECOVER_OK,
    "file.consume": CONSUME,
    "file.consume-ok": CONSUME_OK,
    "file.cancel": CANCEL,
    "file.cancel-ok": CANCEL_OK,
    "file.deliver": DELIVER,
    "file.ack": SETTLE,
    "file.reject": SETTLE,
    "tx.select": TX_SELECT,
    "tx.commit": TX_COMMIT,
    "tx.rollback": TX_ROLLBACK,
    "confirm.select": CONFIRM_SELECT,
}
_NO_WAIT = ("no_wait", "nowait")


class Rule:
    """The facts of one method that the state machine needs.

    Attributes:
        name: such as ``"basic.deliver"``.
        class_id, method_id, index: its numbers.
        kind: what it does to the state, one of `constants`.
        senders: bit 0 if a client may send it, bit 1 if a server may.
        content: whether a content follows.
        replies: indexes of the methods that may answer it.
        is_reply: whether it answers another method.
        strict: whether it must answer one that waits. False for those methods of 0-9 that the specification
            does not call synchronous.
        ordered: whether this side sends it only in answer to the oldest of those that wait.
        synchronous: whether replies to later requests must wait for the reply to this one. channel.flow is
            answered at once, whatever else waits.
        has_multiple: whether it has the argument `multiple`.
        no_wait: the argument with which the sender renounces the reply, or None.
    """

    __slots__ = (
        "_consumer_place", "_multiple_place", "_tag_place", "class_id", "content", "has_multiple", "index",
        "is_reply", "kind", "method_id", "name", "no_wait", "ordered", "replies", "senders", "strict",
        "synchronous",
    )  # fmt: skip

    def __init__(
        self, spec: MethodSpec, replies: frozenset[int], requests: list[MethodSpec], waited_for: bool
    ) -> None:
        self.name = spec.name
        self.class_id = spec.class_id
        self.method_id = spec.method_id
        self.index = spec.index
        self.kind = _KINDS.get(spec.name, ORDINARY)
        self.senders = (spec.server is not None) << CLIENT | (spec.client is not None) << SERVER
        self.content = spec.content
        self.replies = replies
        self.is_reply = bool(requests)
        # The specifications call one of the pair synchronous, mostly both.
        self.synchronous = (spec.synchronous or waited_for) and self.kind != FLOW
        self.strict = bool(requests) and (
            spec.synchronous or False not in [request.synchronous for request in requests]
        )
        self.ordered = self.strict and FLOW not in [_KINDS.get(request.name) for request in requests]
        names = [field.attribute for field in spec.fields]
        self.has_multiple = "multiple" in names
        self._tag_place = names.index("delivery_tag") if "delivery_tag" in names else -1
        self._consumer_place = names.index("consumer_tag") if "consumer_tag" in names else -1
        self._multiple_place = names.index("multiple") if self.has_multiple else -1
        no_wait = [name for name in _NO_WAIT if name in names]
        self.no_wait: str | None = no_wait[0] if no_wait else None

    # The arguments that are asked for with every delivery and acknowledgement. C code knows their places.

    if PURE:

        def delivery_tag(self, method: Any) -> int:
            """Return the argument of a method that has one."""
            return method.delivery_tag  # type: ignore[no-any-return]

        def consumer_tag(self, method: Any) -> Any:
            """Return the argument of a method that has one."""
            return method.consumer_tag

        def multiple(self, method: Any) -> bool:
            """Return the argument; False for a method without one."""
            return self.has_multiple and bool(method.multiple)

    def waits(self, method: Any) -> bool:
        """Return whether the sender of a method waits for its reply."""
        return bool(self.replies) and (self.no_wait is None or not getattr(method, self.no_wait))


@cache
def rules_of(dialect: Dialect) -> dict[Any, Rule]:
    """The rule of each method class of a dialect."""
    specs = {cls.spec.name: cls.spec for cls in dialect.methods.values()}
    requests: dict[str, list[MethodSpec]] = {name: [] for name in specs}
    replies: dict[str, list[MethodSpec]] = {}
    for name, spec in specs.items():
        class_name = name.partition(".")[0]
        replies[name] = [specs[f"{class_name}.{answer}"] for answer in spec.responses]
        for answer in replies[name]:
            requests[answer.name].append(spec)
    rules = {}
    for cls in dialect.methods.values():
        answers = replies[cls.spec.name]
        indexes = frozenset([answer.index for answer in answers])
        waited_for = True in [answer.synchronous for answer in answers]
        rules[cls] = Rule(cls.spec, indexes, requests[cls.spec.name], waited_for)
    return rules


@cache
def classes_of(dialect: Dialect) -> dict[str, Any]:
    """The method classes of a dialect by their names in the specification."""
    return {cls.spec.name: cls for cls in dialect.methods.values()}


__all__ = ["ROLES", "Rule", "classes_of", "rules_of"]
