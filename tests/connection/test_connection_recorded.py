"""Recorded connections of real clients and brokers, replayed into either side."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.connections import ROLES, Replay, violations
from support.implementation import Implementation

from amqpcodec.capture import CapturedFrame, read_frames

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
# What the clients did wrong on purpose, and what the broker answered.
PROVOKED = {"real-bunny": [(406, "PRECONDITION_FAILED - unknown delivery tag 77")], "real-txamqp-0-8": []}


def closes(items: list[CapturedFrame]) -> list[tuple[int, str]]:
    """What the recorded broker closed channels with."""
    methods = [item.frame.payload for item in items if item.direction == 1]
    return [
        (method.reply_code, method.reply_text)
        for method in methods
        if hasattr(method, "spec") and method.spec.name == "channel.close"
    ]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", PROVOKED)
def test_a_recorded_connection_breaks_no_rule_but_those_it_broke(
    impl: Implementation, name: str, role: str
) -> None:
    items = [item for item in read_frames(EXAMPLES / f"{name}.pcap") if isinstance(item, CapturedFrame)]
    assert len({item.connection.number for item in items}) == 1
    replay = Replay(impl, role, items)
    provoked = PROVOKED[name]
    if role == "server":
        assert replay.refused == []
        found = [(violation.reply_code, violation.reply_text) for violation in violations(replay.events)]
        assert found == provoked
    else:
        assert violations(replay.events) == []
        texts = [(code, text.partition(" - ")[2]) for code, text in provoked]
        assert [(error.reply_code, error.message) for error in replay.refused] == texts
    assert set(provoked) <= set(closes(items))
    assert replay.connection.state == "closed"
