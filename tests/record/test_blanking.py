"""Login data is blanked at its length, however the stream is cut, and nothing else changes."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tiers import of_dialects

from amqpcodec import DIALECTS, rabbitmq
from amqpcodec import dialect as find_dialect
from amqpcodec.record.blanking import Blanker
from amqpcodec.spec import CREDENTIALS

SECRET = b"\0guest\0a secret \xce\x01\x00\x00"


def stream(amqp: Any, secret: bytes) -> bytes:
    """Return octets of a client: all methods with login data, before, between and behind others."""
    connection = amqp.Connection
    methods = [
        (0, connection.StartOk({"product": "x" * 300, "n": {"a": 1}}, "PLAIN", secret, "en_US")),
        (0, connection.SecureOk(secret)),
        (0, connection.TuneOk(0, 131072, 60)),
        (1, amqp.Channel.Open()),
    ]
    octets: bytes = amqp.protocol_header() + b"".join(
        amqp.encode_method(channel, method) for channel, method in methods
    )
    if hasattr(connection, "UpdateSecret"):
        octets += amqp.encode_method(0, connection.UpdateSecret(secret, "in time"))
    body = amqp.encode_method(0, connection.SecureOk(SECRET))  # inside a body it is no method
    return octets + amqp.encode_message(1, amqp.Basic.Publish(), None, body) + octets[8:]


def blanked(octets: bytes, cuts: list[int]) -> bytes:
    blanker = Blanker()
    found = b""
    for begin, end in zip([0, *cuts], [*cuts, len(octets)], strict=True):
        shown, hidden = blanker.feed(octets[begin:end])
        assert (len(shown), hidden) == (end - begin, 0)
        found += shown
    return found


@pytest.mark.parametrize("name", of_dialects(DIALECTS))
def test_login_data_is_blanked_at_its_length_wherever_the_stream_is_cut(name: str) -> None:
    amqp = find_dialect(name)
    octets, expected = stream(amqp, SECRET), stream(amqp, b"*" * len(SECRET))
    assert blanked(octets, []) == expected
    assert blanked(octets, list(range(1, len(octets)))) == expected
    for cut in range(len(octets)):
        assert blanked(octets, [cut]) == expected


@given(st.binary(max_size=200), st.lists(st.integers(0, 900), max_size=8), st.binary(max_size=30))
def test_any_cuts_give_what_no_cuts_give(secret: bytes, cuts: list[int], tail: bytes) -> None:
    octets = stream(rabbitmq, secret) + tail
    whole, hidden = Blanker().feed(octets)
    blanker, shown, left = Blanker(), b"", 0
    bounds = [0, *sorted(min(cut, len(octets)) for cut in cuts), len(octets)]
    for begin, end in pairwise(bounds):
        piece, more = blanker.feed(octets[begin:end])
        assert not (left and piece)
        shown, left = shown + piece, left + more
    assert len(shown) + left == len(octets) == len(whole) + hidden
    assert shown[: len(whole)] == whole[: len(shown)]
    assert len(shown) - len(whole) < 8  # of what is no frame, so many octets may be out by then


@pytest.mark.parametrize("name", of_dialects(DIALECTS))
def test_the_methods_with_login_data_are_laid_out_alike_in_every_dialect(name: str) -> None:
    def layouts(amqp: ModuleType) -> dict[str, Any]:
        return {
            cls.spec.name: (cls.spec.index, [(field.name, field.type) for field in cls.spec.fields])
            for cls in amqp.METHODS.values()
            if any((cls.spec.name, field.name) in CREDENTIALS for field in cls.spec.fields)
        }

    assert layouts(find_dialect(name)).items() <= layouts(rabbitmq).items()
    assert {method for method, _ in CREDENTIALS} == layouts(rabbitmq).keys()


@pytest.mark.parametrize(
    "octets",
    [
        b"AMQP\x03\x01\x00\x00" + b"\x00\x00\x00\x1b\x02\x01\x00\x00\x00S@PLAIN\0user\0password",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"GET / HTTP/1.1\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n\r\n",
        rabbitmq.protocol_header() + b"\x01\x00\x00\x00\x00\x00\x04none!password",
    ],
    ids=["AMQP 1.0", "TLS", "HTTP", "a frame without its end"],
)
def test_what_is_no_amqp_is_left_out(octets: bytes) -> None:
    for step in (1, 5, len(octets)):
        blanker, shown = Blanker(), b""
        for at in range(0, len(octets), step):
            shown += blanker.feed(octets[at : at + step])[0]
        assert octets.startswith(shown)
        assert b"pass" not in shown
        assert b"Basic" not in shown
        assert len(shown) < 20


def test_lengths_that_lie_blank_no_more_than_their_frame() -> None:
    secure_ok = b"\x01\x00\x00\x00\x00\x00\x0d\x00\x0a\x00\x15\xff\xff\xff\xffsecre\xce"
    octets = secure_ok + rabbitmq.encode_heartbeat() * 3
    for step in (1, 3, 1000):
        blanker, shown = Blanker(), b""
        for at in range(0, len(octets), step):
            shown += blanker.feed(octets[at : at + step])[0]
        assert shown == octets.replace(b"secre", b"*****")
