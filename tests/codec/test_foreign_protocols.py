"""Streams that are plainly of another protocol give an error that says so."""

from __future__ import annotations

import ssl
from types import ModuleType

import pytest
from support.outcomes import describe_error, error_of, octet_by_octet


def client_hello() -> bytes:
    """What a TLS client says first."""
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    connection = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="example.org")
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def mqtt_connect(name: bytes, more: int) -> bytes:
    body = len(name).to_bytes(2, "big") + name + b"\x04\x02\x00\x3c" + bytes(more)
    size, length = len(body), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return b"\x10" + length + bytes([size]) + body


OPENINGS = {
    "GET": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "an HTTP request"),
    "POST": (b"POST /x HTTP/1.1\r\n", "an HTTP request"),
    "OPTIONS": (b"OPTIONS * HTTP/1.1\r\n", "an HTTP request"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "an HTTP request"),
    "response": (b"HTTP/1.1 400 Bad Request\r\n", "an HTTP response"),
    "TLS": (client_hello(), "a TLS handshake: the peer speaks TLS on this port"),
    "TLS alert": (b"\x15\x03\x03\x00\x02\x02\x46", "a TLS alert: the peer speaks TLS on this port"),
    "MQTT": (mqtt_connect(b"MQTT", 5), "MQTT"),
    "MQTT, long": (mqtt_connect(b"MQTT", 500), "MQTT"),
    "MQTT, longer": (mqtt_connect(b"MQTT", 20000), "MQTT"),
    "MQTT 3.1": (mqtt_connect(b"MQIsdp", 5), "MQTT"),
}


@pytest.mark.parametrize("name", OPENINGS)
def test_the_error_names_the_protocol_however_the_stream_is_cut(codec: ModuleType, name: str) -> None:
    octets, shown = OPENINGS[name]
    error = error_of(codec.FrameDecoder(), octets)
    assert f"frame type {octets[0]} is not known: looks like {shown}" in error.message
    assert (error.reply_code, error.offset, error.fatal) == (501, 0, True)
    for decoder in (codec.FrameDecoder(), codec.MessageDecoder(), codec.FrameDecoder(payloads="raw")):
        assert describe_error(error_of(decoder, *octet_by_octet(octets))) == describe_error(error)


@pytest.mark.parametrize("layer", [0, 2, 3])
def test_the_header_of_amqp_1_0_is_named(codec: ModuleType, layer: int) -> None:
    header = b"AMQP" + bytes([layer]) + b"\x01\x00\x00"
    error = error_of(codec.FrameDecoder(), header)
    assert f"protocol header {header!r} is not of {codec.DIALECT.name}: looks like AMQP 1.0" in error.message
    assert (error.reply_code, error.offset) == (501, 0)


@pytest.mark.parametrize("name", OPENINGS)
def test_in_the_midst_of_a_stream_octets_are_what_they_are(codec: ModuleType, name: str) -> None:
    octets = OPENINGS[name][0]
    error = error_of(codec.FrameDecoder(), codec.encode_heartbeat() + octets)
    assert (error.message, error.offset) == (f"frame type {octets[0]} is not known", 8)


@pytest.mark.parametrize(
    "octets", [b"\x16\x01\x02\x03\x04\x05\x06\x07", b"\x10\xff\xff\xff\xff\xff\xff", b"GETTING "]
)
def test_what_only_begins_alike_is_not_named(codec: ModuleType, octets: bytes) -> None:
    assert error_of(codec.FrameDecoder(), octets).message == f"frame type {octets[0]} is not known"
