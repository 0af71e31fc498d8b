"""Connections: conversations of both sides, and octets that nobody has sent."""

from __future__ import annotations

from typing import Any

from promises import BUILDS, NAMES, chunked, demand
from support.connections import Pair
from support.conversations import HEARTBEATS, Conversation, agreed
from support.implementation import Implementation

from amqpcodec import LocalProtocolError
from amqpcodec.connection import ConnectionClosed

MAX_STEPS = 300


def connection(data: bytes) -> None:
    """Either role, in both builds: the same events, no other exception, the specified close, no hang."""
    if len(data) < 3:
        return
    dialect, mode, size, octets = NAMES[data[0] % 5], data[1], data[2], data[3:]
    if mode & 4:
        seen = [received(impl, dialect, mode, [octets]) for impl in BUILDS]
        demand(
            received(BUILDS[0], dialect, mode, chunked(octets, size)) == seen[0], "the cut matters", dialect
        )
    else:
        heartbeat = HEARTBEATS[size % len(HEARTBEATS)]
        seen = [talked(impl, dialect, mode, heartbeat, octets) for impl in BUILDS]
    demand(seen[0] == seen[1], "the builds differ", dialect, mode, seen)


def talked(impl: Implementation, dialect: str, mode: int, heartbeat: int, program: bytes) -> Any:
    """A conversation by a program: legal ones have no violations and keep both sides in step."""
    legal = bool(mode & 2)
    talk = Conversation(impl, dialect, at_once=bool(mode & 1), legal=legal, heartbeat=heartbeat)
    talk.run(program[: 4 * MAX_STEPS])
    client, server = talk.pair.client, talk.pair.server
    if legal:
        demand(not talk.violations, "a legal conversation is refused", dialect, talk.violations)
        if client.state == server.state == "open":
            demand(agreed(client, server), "the sides are out of step", dialect)
    for side in (client, server):
        list(side.receive_eof())
        demand(side.state == "closed", "a connection goes on after its end")
    return talk.events, client.data_to_send(), server.data_to_send()


def received(impl: Implementation, dialect: str, mode: int, chunks: list[bytes]) -> Any:
    """What one side makes of octets, from the very first or once the connection is open."""
    pair = Pair(impl, dialect)
    if mode & 2:
        pair.opened()
    role = "client" if mode & 1 else "server"
    side, login = getattr(pair, role), pair.logins[role]
    events: list[Any] = []
    for chunk in chunks:
        for event in side.receive_data(chunk):
            events.append(event)
            try:
                login.handle(side, event)
            except LocalProtocolError as error:  # no mechanism that the client can use
                demand(error.reply_code == 403, "a login breaks a rule", error)
    events += side.receive_eof()
    demand([type(event) for event in events].count(ConnectionClosed) == 1, "one end", events)
    demand(type(events[-1]) is ConnectionClosed, "the end is the last", events)
    return [repr(event) for event in events], side.data_to_send()
