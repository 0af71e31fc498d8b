"""Conversations chosen at random: legal ones keep both sides in step, others end in the right close."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.campaign import share
from support.conversations import HEARTBEATS, Conversation, agreed
from support.implementation import Implementation

from amqpcodec.connection import ConnectionClosed

PROGRAMS = st.binary(max_size=400)
INTERVALS = st.sampled_from(HEARTBEATS)
SOFT = (311, 313, 403, 404, 405, 406)
HARD = (320, 501, 502, 503, 504, 505, 506, 530, 540, 541)


@pytest.mark.parametrize("at_once", [True, False], ids=["in turn", "crossing"])
@settings(max_examples=share(40))
@given(program=PROGRAMS, heartbeat=INTERVALS)
def test_legal_conversations_keep_both_sides_in_step(
    impl: Implementation, dialect: str, at_once: bool, program: bytes, heartbeat: int
) -> None:
    talk = Conversation(impl, dialect, at_once=at_once, legal=True, heartbeat=heartbeat)
    talk.run(program)
    assert talk.violations == []
    client, server = talk.pair.client, talk.pair.server
    if client.state == "open":  # and not timed out
        assert agreed(client, server)
        client.close()
        talk.settle()
    assert (client.state, server.state) == ("closed", "closed") or "timeout" in repr(talk.events)


@settings(max_examples=share(40))
@given(program=PROGRAMS)
def test_other_conversations_end_in_the_close_that_the_code_says(
    impl: Implementation, dialect: str, program: bytes
) -> None:
    talk = Conversation(impl, dialect, at_once=False, legal=False)
    talk.run(program)
    for role, violation in talk.violations:
        close = violation.to_send
        name = close.spec.name
        assert violation.reply_code in (SOFT if name == "channel.close" else HARD)
        assert (violation.channel == 0) == (name == "connection.close")
        assert close.reply_code == violation.reply_code
        if name == "connection.close":
            assert talk.sides[role].state in ("closing", "closed")
    talk.clock.now += 1000
    for side in talk.sides.values():
        list(side.receive_eof())
        side.on_time()
        assert side.state == "closed"


@settings(max_examples=share(30))
@given(program=PROGRAMS, mode=st.integers(0, 3), heartbeat=INTERVALS)
@example(program=b"", mode=0, heartbeat=60)
@example(program=bytes([14, 33, 0, 0]) * 3, mode=3, heartbeat=3)
def test_both_builds_hold_the_same_conversation(
    both: Any, dialect: str, program: bytes, mode: int, heartbeat: int
) -> None:
    seen = []
    for impl in both:
        talk = Conversation(impl, dialect, at_once=bool(mode & 1), legal=bool(mode & 2), heartbeat=heartbeat)
        talk.run(program)
        seen.append((talk.events, talk.pair.client.state, talk.pair.server.state))
    assert seen[0] == seen[1]


def test_a_conversation_closed_by_both_sides_at_once_is_closed_for_both(impl: Implementation) -> None:
    talk = Conversation(impl, "rabbitmq-0-9-1", at_once=False, legal=True)
    talk.pair.client.close(200, "client")
    talk.pair.server.close(320, "server")
    talk.settle()
    ours, theirs = (
        talk.names["connection.close"](*told, 0, 0) for told in ((200, "client"), (320, "server"))
    )
    closed = [
        ConnectionClosed("local", 320, "server", crossed=ours),
        ConnectionClosed("local", 200, "client", crossed=theirs),
    ]
    assert sorted(talk.events) == sorted(
        f"{role} {event!r}" for role, event in zip(("server", "client"), closed, strict=True)
    )
