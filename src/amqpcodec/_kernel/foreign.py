"""Other protocols, recognised by the octets that open their streams: for errors that say what is wrong.

The first seven octets decide, which are there before any octets are found to be no frame. So an error has the
same text however the stream was cut.
"""

from __future__ import annotations

OPENING = 7  # octets that are looked at

_HTTP_METHODS = (
    b"GET ", b"PUT ", b"HEAD ", b"POST ", b"PATCH ", b"TRACE ", b"DELETE ", b"OPTIONS", b"CONNECT",
    b"PRI * H",
)  # fmt: skip
_TLS_HANDSHAKE, _TLS_ALERT, _TLS_MAJOR = 22, 21, 3
_MQTT_CONNECT = 0x10
_AMQP_1_0_LAYERS = (0, 2, 3)  # AMQP itself, TLS, SASL


def foreign_protocol(octets: bytes) -> str:
    """Name the protocol that opens a stream and say what to do, for an error; "" if it is not known.

    Args:
        octets: the first octets of the stream, seven at least.

    Source: RFC 9112 sections 3 and 4, RFC 9113 section 3.4, RFC 8446 section 5.1, MQTT 3.1.1 section 3.1,
    AMQP 1.0 section 2.2.
    """
    opening = octets[:OPENING]
    if opening.startswith(_HTTP_METHODS):
        return ": looks like an HTTP request: the peer speaks HTTP on this port, and wants an HTTP server"
    if opening.startswith(b"HTTP/"):
        return (
            ": looks like an HTTP response: the peer speaks HTTP on this port; connect to its port for AMQP"
        )
    if opening[0] == _TLS_HANDSHAKE and opening[1] == _TLS_MAJOR:
        return (
            ": looks like a TLS handshake: the peer speaks TLS on this port; accept TLS, or have it use none"
        )
    if opening[0] == _TLS_ALERT and opening[1] == _TLS_MAJOR:
        return ": looks like a TLS alert: the peer speaks TLS on this port; connect with TLS"
    if opening.startswith(b"AMQP") and opening[4] in _AMQP_1_0_LAYERS and opening[5:] == b"\x01\x00":
        return ": looks like AMQP 1.0, another protocol: have the peer use AMQP 0-9-1 or 0-9"
    if opening[0] == _MQTT_CONNECT and _names_mqtt(opening):
        return ": looks like MQTT: the peer speaks MQTT on this port, and wants an MQTT server"
    return ""


def _names_mqtt(opening: bytes) -> bool:
    """Return whether the name of the protocol, MQTT or MQIsdp, follows the length of one to three octets."""
    at = 1
    while at < 4 and opening[at] & 0x80:
        at += 1
    return opening[at + 1 : at + 4] in (b"\x00\x04M", b"\x00\x06M")
