"""The PROXY protocol, versions 1 and 2: what a load balancer says of a connection before its first octet."""

from __future__ import annotations

import ipaddress
import re
import struct
from typing import NamedTuple

from .model import Endpoint, Proxied

_FIRST, _LONGEST_FIRST = b"PROXY ", 107
_LINE = re.compile(
    rb"PROXY (?:TCP[46] ([0-9a-fA-F:.]+) ([0-9a-fA-F:.]+) (\d{1,5}) (\d{1,5})|UNKNOWN[^\r]*)\r\n"
)
_SECOND = b"\r\n\r\n\0\r\nQUIT\n"
_HEAD = struct.Struct("!12sBBH")
_VERSION, _PROXY = 0x20, 1
MOST_OCTETS = _HEAD.size + 0xFFFF  # of any header
_SIZES = {0x11: 4, 0x21: 16}  # octets of an address, by family and protocol: TCP of IPv4 and of IPv6


class ProxyHeader(NamedTuple):
    """A header.

    Attributes:
        size: its octets; 0 where it is not whole.
        ends: the real ends; None where it does not say, as of health checks.
    """

    size: int
    ends: Proxied | None = None


def proxy_header(octets: bytes) -> ProxyHeader | None:
    """Return the header that the first octets of a connection are, or begin; None for none."""
    if octets[: len(_FIRST)] == _FIRST[: len(octets)]:
        return _first(octets)
    if octets[: len(_SECOND)] == _SECOND[: len(octets)]:
        return _second(octets)
    return None


def _first(octets: bytes) -> ProxyHeader | None:
    found = _LINE.match(octets)
    if found is None:
        whole = b"\n" in octets or len(octets) >= _LONGEST_FIRST
        return None if whole else ProxyHeader(0)
    if found[1] is None:
        return ProxyHeader(found.end())
    try:
        client, server = (ipaddress.ip_address(found[at].decode()).packed for at in (1, 2))
    except ValueError:
        return None
    ports = int(found[3]), int(found[4])
    if max(ports) > 0xFFFF:
        return None
    return ProxyHeader(found.end(), Proxied(Endpoint(client, ports[0]), Endpoint(server, ports[1])))


def _second(octets: bytes) -> ProxyHeader | None:
    if len(octets) < _HEAD.size:
        return ProxyHeader(0)
    _, command, family, length = _HEAD.unpack_from(octets)
    if command & 0xF0 != _VERSION:
        return None
    end = _HEAD.size + length
    if len(octets) < end:
        return ProxyHeader(0)
    size = _SIZES.get(family, 0)
    if command != _VERSION | _PROXY or not size or length < 2 * size + 4:
        return ProxyHeader(end)
    client, server, client_port, server_port = struct.unpack_from(f"!{size}s{size}sHH", octets, _HEAD.size)
    return ProxyHeader(end, Proxied(Endpoint(client, client_port), Endpoint(server, server_port)))
