"""The values that the layers of the capture reader pass to each other, and its one exception.

Every layer adds to the one below:

    container  file octets          -> Packet | Fault
    network    Packet               -> Segment
    streams    Segment              -> Data | Gap | Aside | Close of a Connection; LocatedSegment
    frames     these                -> CapturedFrame | Fault
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..errors import AmqpError

if TYPE_CHECKING:
    from typing import Any

CLIENT_TO_SERVER = 0
SERVER_TO_CLIENT = 1
DIRECTION_NAMES = ("c>s", "s>c")

FaultKind = Literal["gap", "lost", "error", "file"]


class CaptureError(AmqpError, ValueError):
    """A file is not a capture, or cannot be read any further.

    Attributes:
        message: what is wrong, without the offset.
        offset: bytes from the start of the (uncompressed) file to the fault.
    """

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message, offset)
        self.message = message
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.message} (at octet {self.offset} of the file)"


class Packet(NamedTuple):
    """One packet as it was recorded.

    Attributes:
        number: 1 for the first packet of the file.
        time_ns: integer nanoseconds since 1970-01-01 UTC, less than 2**62 from it; None where the file
            keeps no time.
        linktype: LINKTYPE number of its interface.
        data: the octets recorded.
        original_length: octets on the wire; more than `data` holds if the packet was snapped.
    """

    number: int
    time_ns: int | None
    linktype: int
    data: bytes
    original_length: int


class Endpoint(NamedTuple):
    """One end of a TCP connection.

    Attributes:
        address: packed, 4 or 16 octets.
        port: its port.
        tunnel: kinds and numbers of the tunnels that the recorder saw it in, the outermost first, such as
            ``"mpls 16, vxlan 42"``. Ends with equal addresses in different tunnels are different ends.
    """

    address: bytes
    port: int
    tunnel: str = ""

    def __str__(self) -> str:
        if len(self.address) == 4:
            return f"{'.'.join(map(str, self.address))}:{self.port}"
        return f"[{ipaddress.IPv6Address(self.address)}]:{self.port}"


class Segment(NamedTuple):
    """One TCP segment.

    Attributes:
        packet: number of the packet that carried it.
        time_ns: its time, see `Packet`.
        source: the sender.
        destination: the receiver.
        seq: sequence number of the first octet (of SYN, if set), 0 to 2**32 - 1.
        ack: acknowledged sequence number; meaningful with the ACK flag only.
        flags: the TCP flags (FIN 1, SYN 2, RST 4, PSH 8, ACK 16).
        data: the payload as far as it was recorded.
        length: octets of payload on the wire; more than `data` holds if the packet was snapped.
    """

    packet: int
    time_ns: int | None
    source: Endpoint
    destination: Endpoint
    seq: int
    ack: int
    flags: int
    data: bytes
    length: int


class Proxied(NamedTuple):
    """The ends of a connection that a proxy has passed on, as it says before the first octet."""

    client: Endpoint
    server: Endpoint


@dataclass(slots=True, eq=False)
class Connection:
    """One TCP connection: a pair of endpoints between one opening and the next.

    Attributes:
        number: counts the TCP conversations of a file from 0, in order of their first packet, whatever
            their ports: the number Wireshark shows as ``tcp.stream``.
        client: the end that opened it, or whose peer has the port asked for.
        server: the other end.
        dialect: name of the dialect it is decoded as, once that is known.
        opened: whether its opening was recorded, a SYN of either side.
        proxied: the real ends, if a proxy has named them by the PROXY protocol.
        copy_of: number of the connection that it repeats, with other addresses or in another tunnel, if it
            was recorded twice.
    """

    number: int
    client: Endpoint | None
    server: Endpoint | None
    dialect: str | None = field(default=None)
    opened: bool = field(default=False)
    proxied: Proxied | None = field(default=None)
    copy_of: int | None = field(default=None)


class Data(NamedTuple):
    """Octets of one direction, in order.

    `offset` counts from the first octet seen of the direction.
    """

    connection: Connection
    direction: int
    offset: int
    octets: bytes
    packet: int | None
    time_ns: int | None


class Gap(NamedTuple):
    """Octets of one direction that the capture does not have; packet and time are those of what follows.

    `snapped` is whether the recorder cut them off, by its snap length; packet and time are then of their own.
    `whole` says that nothing of the direction was recorded: its receiver has acknowledged these octets.
    """

    connection: Connection
    direction: int
    offset: int
    length: int
    packet: int | None
    time_ns: int | None
    snapped: bool = False
    whole: bool = False


class Close(NamedTuple):
    """Nothing more will come in this direction."""

    connection: Connection
    direction: int
    offset: int
    packet: int | None
    time_ns: int | None


class Aside(NamedTuple):
    """Recorded octets that are no part of the stream: `message` says what they are.

    `offset` is negative for those before the first octet of the stream, which came too late.
    """

    connection: Connection
    direction: int
    offset: int
    length: int
    message: str
    packet: int | None
    time_ns: int | None


Event = Data | Gap | Close | Aside


class LocatedSegment(NamedTuple):
    """A segment and its position in a connection.

    Attributes:
        connection: its connection.
        direction: 0 client to server, 1 server to client.
        offset: octets of that direction before its first one, as in `Data`; negative if it lies before the
            first octet of the direction, None if its position is not known.
        segment: the segment.
    """

    connection: Connection
    direction: int
    offset: int | None
    segment: Segment


class CapturedFrame(NamedTuple):
    """A frame and where it was found.

    Attributes:
        connection: the TCP connection.
        direction: 0 client to server, 1 server to client (`DIRECTION_NAMES`).
        packet: number of the packet that brought its last missing octet; None for a raw stream.
        time_ns: that packet's time.
        offset: octets of this direction's stream before the frame.
        size: octets of payload (8 for a protocol header).
        octets: the whole frame as it was on the wire.
        frame: the decoded frame, `amqpcodec.Frame`.
        dialect: the dialect it was decoded as.
    """

    connection: Connection
    direction: int
    packet: int | None
    time_ns: int | None
    offset: int
    size: int
    octets: bytes
    frame: Any
    dialect: str


class Fault(NamedTuple):
    """Something missing or unreadable; reading continues behind it.

    Attributes:
        kind: ``"gap"`` octets that the capture does not have; ``"lost"`` recorded octets that belong to
            no frame that can be trusted; ``"error"`` a frame that breaks the protocol; ``"file"``
            something in the capture file itself.
        message: what happened.
        connection: the TCP connection, None for kind ``"file"``.
        direction: 0, 1, or None where it concerns both or none.
        packet: number of the packet at which it was noticed.
        time_ns: that packet's time.
        offset: octets of the direction's stream before it (of the file, for kind ``"file"``).
        length: octets concerned; 0 where unknown.
        reply_code: the AMQP reply code, for kind ``"error"``.
        octets: the offending frame, for kind ``"error"`` with its end known.
        dropped: packets that the recorder says it has dropped, for kind ``"file"``.
    """

    kind: FaultKind
    message: str
    connection: Connection | None = None
    direction: int | None = None
    packet: int | None = None
    time_ns: int | None = None
    offset: int = 0
    length: int = 0
    reply_code: int | None = None
    octets: bytes = b""
    dropped: int = 0


Item = CapturedFrame | Fault
