"""Probes by octets that no client of this package would send."""

from __future__ import annotations

from struct import pack
from typing import Any

from probing import Octets

from amqpcodec import rabbitmq as amqp

Basic, Channel, Connection, Queue = amqp.Basic, amqp.Channel, amqp.Connection, amqp.Queue
GREETING = amqp.protocol_header()
METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
CLOSES_WELL = {"capabilities": {"authentication_failure_close": True}}
NOT_UTF8 = b"\x02a\xff"


def frame(kind: int, channel: int, payload: bytes = b"", end: int = 0xCE) -> bytes:
    return pack(">BHI", kind, channel, len(payload)) + payload + bytes([end])


def method(channel: int, *methods: Any) -> bytes:
    return b"".join(amqp.encode_method(channel, each) for each in methods)


def header(size: int, properties: bytes = bytes(2), class_id: int = 60, weight: int = 0) -> bytes:
    return frame(HEADER, 1, pack(">HHQ", class_id, weight, size) + properties)


def login(mechanism: str, response: bytes) -> bytes:
    return GREETING + method(0, Connection.StartOk(CLOSES_WELL, mechanism, response, "en_US"))


def tuned(*answer: int) -> bytes:
    return login("PLAIN", b"\0guest\0guest") + method(0, Connection.TuneOk(*answer))


OPEN = tuned(2047, 131072, 0) + method(0, Connection.Open("/")) + method(1, Channel.Open())
PUBLISH = OPEN + method(1, Basic.Publish("", "q"))
RETURNED = method(1, Basic.Publish("", "none", mandatory=True))
DECLARE = Queue.Declare(queue="", exclusive=True, passive=True)
FOUND = method(0, Connection.Open("/")) + method(1, Channel.Open(), Queue.Declare(queue="none", passive=True))
DECLARING = pack(">HHHB", 50, 10, 0, 1) + b"q\0"  # and a table
FAILED = OPEN + method(1, Queue.Declare(queue="none", passive=True))  # by which the channel is closed
HEADERS = b"\x20\0\0\0\0\x0b\x01a"  # of properties, with a value of 8 octets
ACCESS = pack(">HH", 30, 10) + b"\x05/data\x1f"

_CLOSED: dict[str, bytes] = {
    "a second open": OPEN + method(1, Channel.Open()),
    "an open before close-ok": FAILED + method(1, Channel.Open()),
    "a method on a closed channel": OPEN + method(3, DECLARE),
    "a close on a closed channel": OPEN + method(3, Channel.Close(200)),
    "a message on a closed channel": OPEN + amqp.encode_message(3, Basic.Publish("", "q"), None, b"x"),
    "a message on a closed channel, cut": OPEN + method(3, Basic.Publish("", "q"), DECLARE),
    "a close-ok for no close": OPEN + method(1, Channel.CloseOk()),
    "a method for clients": OPEN + method(1, Queue.DeclareOk("q", 0, 0)),
    "a message for clients": OPEN + method(1, Basic.Return(312, "", "", "")) + header(0),
    "a message for clients, cut": OPEN + method(1, Basic.Return(312, "", "", "")) + method(1, DECLARE),
    "a flow-ok for no flow": OPEN + method(1, Channel.FlowOk(True)),
    "a method of the connection on a channel": OPEN + method(1, Connection.CloseOk()),
    "a method of channels on channel 0": OPEN + method(0, DECLARE),
    "an open of the connection again": OPEN + method(0, Connection.Open("/")),
    "a close-ok for no close of the connection": OPEN + method(0, Connection.CloseOk()),
    "flow stops": OPEN + method(1, Channel.Flow(False)),
    "a body alone": OPEN + frame(BODY, 1, b"x"),
    "a header alone": OPEN + header(1),
    "a body alone on a closed channel": OPEN + frame(BODY, 3, b"x"),
    "a body alone on a channel that is being closed": FAILED + frame(BODY, 1, b"x"),
    "a body on channel 0": OPEN + frame(BODY, 0, b"x"),
    "a body before its header": PUBLISH + frame(BODY, 1, b"x"),
    "a method in place of a header": PUBLISH + method(1, DECLARE),
    "a method in place of a body": PUBLISH + header(1) + method(1, DECLARE),
    "a second header": PUBLISH + header(1) + header(1),
    "a second body": PUBLISH + header(0) + frame(BODY, 1),
    "a header of another class": PUBLISH + header(1, class_id=50),
    "a header with a weight": PUBLISH + header(1, weight=1),
    "a heartbeat on a channel": OPEN + frame(HEARTBEAT, 1),
    "a heartbeat with a payload": OPEN + frame(HEARTBEAT, 0, b"ab"),
    "a method without ids": OPEN + frame(METHOD, 1, b"\0\x32"),
    "a header that is too short": PUBLISH + frame(HEADER, 1, b"\0\x3c"),
    "an unknown type of frame": OPEN + frame(5, 1, b'a"b\\c\n'),
    "a long frame of an unknown type": OPEN + frame(5, 0, b"abcdefgh" * 3),
    "a frame without its end": OPEN + frame(METHOD, 1, b"\0\x32\0\x0a", 0xCD),
    "a body without its end": PUBLISH + header(20) + frame(BODY, 1, b"x" * 20, 0),
    "a frame beyond frame-max": OPEN + pack(">BHI", METHOD, 1, 131073),
    "more of a body than was announced": PUBLISH + header(1) + frame(BODY, 1, b"xyz") + method(1, DECLARE),
    "arguments that are too short": OPEN + frame(METHOD, 1, pack(">HHB", 50, 10, 0)),
    "arguments that are too long": OPEN + frame(METHOD, 1, pack(">HHB", 90, 10, 0)),
    "an ack that is too short": OPEN + frame(METHOD, 1, pack(">HHB", 60, 80, 0)),
    "a name that is too long": OPEN + frame(METHOD, 1, pack(">HHHB", 60, 40, 0, 5) + b"a"),
    "a table beyond its frame": OPEN + frame(METHOD, 1, DECLARING + b"\0\0\0\x20\x01aV"),
    "a close of the connection that is too short": OPEN + frame(METHOD, 0, pack(">HHB", 10, 50, 0)),
    "a name that is not UTF-8": OPEN + frame(METHOD, 1, pack(">HHH", 50, 10, 0) + NOT_UTF8 + bytes(5)),
    "a tag that is not UTF-8": OPEN + frame(METHOD, 1, pack(">HH", 60, 30) + NOT_UTF8 + bytes(1)),
    "a virtual host that is not UTF-8": tuned(2047, 131072, 0)
    + frame(METHOD, 0, pack(">HH", 10, 40) + NOT_UTF8 + bytes(2)),
    "properties beyond their end": PUBLISH + header(0, b"\x80\0\xfftext"),
    "properties that end early": PUBLISH + header(0, bytes(4)),
    "a table in properties that cannot be read": PUBLISH + header(0, b"\x20\0\0\0\0\x05\x01aZzz"),
    "NaN in properties": PUBLISH + header(0, HEADERS + b"d\x7f\xf8" + bytes(6)),
    "an infinity in properties, of 32 bits": PUBLISH + header(0, b"\x20\0\0\0\0\x07\x01af\xff\x80\0\0"),
    "NaN in a list in properties": PUBLISH
    + header(0, b"\x20\0\0\0\0\x10\x01aA\0\0\0\x09d\x7f\xf8" + bytes(6)),
    "a wrong password": login("PLAIN", b"\0guest\0wrong"),
    "a method before the connection is open": tuned(2047, 131072, 0) + method(1, DECLARE),
    "a close before the connection is open": tuned(2047, 131072, 0) + method(0, Connection.Close(200)),
}
_ANSWERED: dict[str, bytes] = {
    "frames that are small": tuned(2047, 4096, 0) + FOUND,
    "frames that are small for some": tuned(2047, 8191, 0) + FOUND,
    "frames that are small enough": tuned(2047, 8192, 0) + FOUND,
    "access is granted": OPEN + frame(METHOD, 1, ACCESS) + method(1, DECLARE),
    "access after a channel error": FAILED + frame(METHOD, 1, ACCESS) + method(1, DECLARE),
    "a frame beyond frame-max, in the slack": OPEN + frame(BODY, 1, bytes(131072)),
    "parts of a body of which one is empty": OPEN
    + RETURNED + header(2) + frame(BODY, 1, b"x") + frame(BODY, 1)
    + frame(BODY, 1, b"y"),
    "a heartbeat amid a body": OPEN
    + RETURNED + header(1) + frame(HEARTBEAT, 0) + frame(BODY, 1, b"y"),
    "close before close-ok": FAILED + method(1, Channel.Close(200), Channel.CloseOk(), Channel.Open()),
    "a method for clients after a channel error": FAILED + method(1, Queue.DeclareOk("q", 0, 0)),
    "a method of the connection after a channel error": FAILED + method(1, Connection.Close(200)),
    "close amid a content": PUBLISH + method(0, Connection.Close(200)),
}  # fmt: skip
_SILENT: dict[str, bytes] = {
    "an unknown method": OPEN + frame(METHOD, 1, pack(">HH", 50, 99)),
    "an unknown class on a closed channel": OPEN + frame(METHOD, 7, pack(">HH", 99, 10)),
    "an unknown method on channel 0": OPEN + frame(METHOD, 0, pack(">HH", 10, 99)),
    "a table with an unknown tag": OPEN + frame(METHOD, 1, DECLARING + b"\0\0\0\x04\x01aZ\0"),
    "a table that ends amid a value": OPEN + frame(METHOD, 1, DECLARING + b"\0\0\0\x05\x01aI\0\0"),
    "NaN in arguments": OPEN + frame(METHOD, 1, DECLARING + b"\0\0\0\x0b\x01ad\x7f\xf8" + bytes(6)),
    "an infinity in arguments": OPEN + frame(METHOD, 1, DECLARING + b"\0\0\0\x0b\x01ad\x7f\xf0" + bytes(6)),
    "PLAIN for another user": login("PLAIN", b"other\0guest\0guest"),
    "PLAIN for oneself": login("PLAIN", b"guest\0guest\0guest"),
    "PLAIN of one part": login("PLAIN", b"guest"),
    "an unknown mechanism": login("EXTERNAL", b""),
    "AMQPLAIN without a name": login("AMQPLAIN", amqp.encode_table({"PASSWORD": "guest"})[4:]),
    "more channels than offered": tuned(2048, 131072, 0),
    "channels without limit": tuned(0, 131072, 0),
    "larger frames than offered": tuned(2047, 131073, 0),
    "frames without limit": tuned(2047, 0, 0),
    "frames that are too small": tuned(2047, 4095, 0),
    "a tune-ok that is too short": login("PLAIN", b"\0guest\0guest")
    + frame(METHOD, 0, pack(">HHH", 10, 31, 0)),
    "open before tune-ok": login("PLAIN", b"\0guest\0guest") + method(0, Connection.Open("/")),
    "a method before start-ok": GREETING + method(1, DECLARE),
    "a close before start-ok": GREETING + method(0, Connection.Close(200)),
    "an unknown type of frame before start-ok": GREETING + frame(9, 0, b"x"),
    "a first frame that is too large": login("PLAIN", bytes(5000)),
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
}  # fmt: skip

OCTETS: dict[str, list[Any]] = {
    **{f"closed: {name}": [Octets(octets)] for name, octets in (_CLOSED | _ANSWERED).items()},
    **{f"ended: {name}": [Octets(octets, ends=True)] for name, octets in _SILENT.items()},
}
