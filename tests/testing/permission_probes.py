"""Probes of a user who may not use all: `PERMITTED` says what, to a broker for tests and to a node."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from declaring_probes import each
from probes import Basic, Exchange, Queue, bind, consume, delete, get, passive
from probing import As, publish

NAME = PASSWORD = "app"
# Of each of these names it may do some; of the others nothing.
PERMITTED = {
    "configure": "^(q|q1|e|e1)$",
    "write": r"^(q|e|amq\.default)$",
    "read": "^(q1|e1|ab)$",
}


def _queue(name: str, **arguments: Any) -> Any:
    """Return a declaration that no node denies."""
    named = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return Queue.Declare(queue=name, exclusive=True, arguments=named)


def _dead(name: str, target: str) -> Any:
    return _queue(name, dead_letter_exchange=target)


def _exchange(name: str, kind: str = "direct", **more: Any) -> Any:
    return Exchange.Declare(exchange=name, type=kind, **more)


def _next(name: str, target: Any) -> Any:
    return _exchange(name, arguments={"alternate-exchange": target})


def _bound(verb: Any, *names: tuple[str, str]) -> list[Any]:
    """Return steps that bind or unbind, each from a source, the second name."""
    source = "source" if verb in (Exchange.Bind, Exchange.Unbind) else "exchange"
    target = "destination" if source == "source" else "queue"
    return each(*(verb(**{target: first, source: second, "routing_key": "k"}) for first, second in names))


_BOTH = ("q", "e1"), ("q1", "e1"), ("q", "e")
_OTHERS = ("e", "e1"), ("e1", "e"), ("e", "e")
_THERE = [_exchange("e"), _exchange("e1"), _queue("q"), _queue("q1")]
_STEPS: dict[str, list[Any]] = {
    "a queue": each(_queue("q"), _queue("q2"), _queue("ab")),
    "a queue, passive": [_queue("q"), *each(passive(), passive("q2"), passive("ab"))],
    "a queue with a fault": each(_queue("q2", message_ttl="no"), _queue("amq.q")),
    "a queue with dead letters": each(*(_dead(*names) for names in (("q", "e"), ("q1", "e2"), ("q1", "e")))),
    "a queue with dead letters to the default exchange": [_dead("q1", "")],
    "a queue that is there, with dead letters": [_queue("q"), _dead("q", "e")],
    "a queue, deleted": each(delete(queue="q"), delete(queue="q2"), delete(queue="none", if_unused=True)),
    "a queue, purged": [*_THERE, *each(*(Queue.Purge(queue=name) for name in ("q1", "q", "none")))],
    "a queue, fetched from": [*_THERE, *each(get("q1"), get("q"), get("none"))],
    "a queue, consumed from": [
        *_THERE, *each(consume("c", "q1"), consume("c", "q"), consume("c", "amq.rabbitmq.reply-to")),
    ],
    "no queue": each(Queue.Purge(queue=""), delete(queue=""), bind(queue="", exchange="e1")),
    "a queue, bound": [*_THERE, *_bound(Queue.Bind, *_BOTH)],
    "a queue, bound to nothing": _bound(Queue.Bind, ("q", "e2"), ("none", "e1"), ("q1", "")),
    "a queue, unbound": _bound(Queue.Unbind, *_BOTH),
    "an exchange": each(_exchange("e"), _exchange("e2"), _exchange("amq.e")),
    "an exchange of no type": [_exchange("e2", "nothing")],
    "an exchange, passive": [
        _exchange("e"), *each(*(_exchange(name, passive=True) for name in ("e", "e2", "ab"))),
    ],
    "an exchange, then another": each(_next("e", "e"), _next("e1", "e1"), _next("e1", "e")),
    "an exchange, then another of a wrong type": each(_next("e1", 1), _next("e", 1), _next("e1", "")),
    "an exchange, deleted": each(*(Exchange.Delete(exchange=name) for name in ("e", "e2", "none"))),
    "an exchange of the broker's": each(
        Exchange.Delete(exchange="amq.topic"), Exchange.Delete(exchange=""), _exchange("")
    ),
    "an exchange, bound": [*_THERE, *_bound(Exchange.Bind, *_OTHERS)],
    "an exchange, bound to the default one": _bound(Exchange.Bind, ("e2", ""), ("e", ""), ("", "")),
    "an exchange, unbound from the default one": _bound(Exchange.Unbind, ("e2", ""), ("e", ""), ("", "e2")),
    "a queue, unbound from the default exchange": _bound(Queue.Unbind, ("q1", ""), ("q", ""), ("none", "")),
    "an exchange, bound to nothing": _bound(Exchange.Bind, ("e2", "e1"), ("e", "none"), ("", "e2")),
    "an exchange, unbound": _bound(Exchange.Unbind, *_OTHERS),
    "a message": [*_THERE, *each(*(publish(name, "k") for name in ("e", "e1", "e2"))), 0.1],
    "a message by the default exchange": [_queue("q1"), publish("", "q1", b"1"), 0.1, get("q1")],
    "a message with a fault": [
        *_THERE,
        *each(
            publish("amq.rabbitmq.trace", "k"), publish("e1", "k", user_id="other"),
            publish("e1", "k", immediate=True),
        ),
        0.1,
    ],
    "what needs nothing": [Basic.Qos(prefetch_count=1), Basic.Recover(True), Basic.Cancel("c")],
}  # fmt: skip
PERMISSIONS: dict[str, list[Any]] = {
    f"permissions: {name}": [As(NAME, PASSWORD), *steps] for name, steps in _STEPS.items()
}


def definitions() -> str:
    """Return what a node reads at its start, to have that user."""
    users = [
        ("guest", "guest", "administrator", dict.fromkeys(PERMITTED, ".*")),
        (NAME, PASSWORD, "", PERMITTED),
    ]
    return json.dumps(
        {
            "vhosts": [{"name": "/"}],
            "users": [
                {
                    "name": name,
                    "password_hash": _hashed(password),
                    "hashing_algorithm": "rabbit_password_hashing_sha256",
                    "tags": tags,
                }
                for name, password, tags, _ in users
            ],
            "permissions": [{"user": name, "vhost": "/", **permitted} for name, _, _, permitted in users],
        }
    )


def _hashed(password: str) -> str:
    salt = b"salt"
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()
