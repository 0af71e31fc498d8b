"""The dictionaries of the targets: octets that mean something in frames or in captures."""

from __future__ import annotations

from collections.abc import Iterator

from amqpcodec import DIALECTS, dialect
from amqpcodec.capture.pcap import MAGICS
from amqpcodec.profiles import PROFILES

# What these targets take is a program of choices, in which no octets mean anything by themselves.
WITHOUT = ("encoder", "batches", "broker")
OF_CAPTURES = ("capture", "packets", "session")
# Ethernet's types of IPv4, IPv6 and VLAN; IPv4 with TCP; the port of AMQP; blocks of pcapng.
PACKETS = {
    "ethernet-ipv4": b"\x08\x00\x45\x00",
    "ethernet-ipv6": b"\x86\xdd\x60\x00",
    "ethernet-vlan": b"\x81\x00",
    "ipv4-tcp": b"\x40\x06",
    "ipv4-udp": b"\x40\x11",
    "ipv4-gre": b"\x40\x2f",
    "ethernet-mpls": b"\x88\x47",
    "ethernet-in-gre": b"\x65\x58",
    "vxlan": b"\x12\xb5",
    "geneve": b"\x17\xc1",
    "port": b"\x16\x28",
    "pcapng-section": b"\x0a\x0d\x0d\x0a",
    "pcapng-byte-order": b"\x4d\x3c\x2b\x1a",
    "pcapng-interface": b"\x01\x00\x00\x00",
    "pcapng-packet": b"\x06\x00\x00\x00",
    "gzip": b"\x1f\x8b\x08\x00",
}


def words(target: str) -> dict[str, bytes]:
    """The octets of a target's dictionary, by names of their own."""
    if target in WITHOUT:
        return {}
    found = dict(_frames())
    if target in OF_CAPTURES:
        found |= {f"pcap-{number}": magic for number, magic in enumerate(MAGICS)} | PACKETS
    return found


def _frames() -> Iterator[tuple[str, bytes]]:
    yield "end", b"\xce"
    yield "heartbeat", b"\x08\0\0\0\0\0\0\xce"
    for name in DIALECTS:
        module = dialect(name)
        yield f"header-{name}", module.DIALECT.protocol_header
        for (class_id, method_id), method in module.METHODS.items():
            yield method.spec.name, class_id.to_bytes(2, "big") + method_id.to_bytes(2, "big")
    for profile in PROFILES.values():
        for tag in profile.tags:
            yield f"tag-{tag}", b"\x01k" + tag.encode()
    for power in (31, 32, 63, 64):
        size = 4 if power <= 32 else 8
        yield f"most-of-{power}-bits", (2**power - 1).to_bytes(size, "big")


def text(target: str) -> str:
    """The dictionary as libFuzzer reads it: ``name="octets"`` on each line; empty if there is none."""
    lines = (f'{_plain(name)}="{_escaped(octets)}"\n' for name, octets in words(target).items())
    return "".join(lines)


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


def _escaped(octets: bytes) -> str:
    return "".join(f"\\x{octet:02x}" for octet in octets)
