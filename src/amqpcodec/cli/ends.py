"""Values of ``--connection``: the number of a connection, or its ends as they are printed somewhere."""

from __future__ import annotations

import ipaddress
import re

from ..capture import Connection, Endpoint

_NUMBER = re.compile(r"#?([0-9]{1,18})")
_BETWEEN = re.compile(r"\s*<?->\s*|\s+[<>]\s+|\s*-\s*")  # of RabbitMQ, tshark, this command
_END = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+))(?::([0-9]{1,5}))?")
FORMS = "3 (tcp.stream), 10.0.0.1, 10.0.0.1:40000, [::1]:5672, or both ends: 10.0.0.1:40000-10.0.0.2:5672"


class Ends:
    """Connections by their number or by one or both of their ends, in any order.

    Args:
        text: as it is given; RabbitMQ's own name of a connection will do.

    Raises:
        ValueError: it is neither.
    """

    def __init__(self, text: str) -> None:
        self._number: int | None = None
        self._ends: list[tuple[bytes, int | None]] = []
        if found := _NUMBER.fullmatch(text.strip()):
            self._number = int(found[1])
            return
        parts = _BETWEEN.split(text.strip())
        try:
            if len(parts) > 2:
                raise ValueError
            self._ends = [_end(part) for part in parts]
        except ValueError:
            raise ValueError(f"{text!r} names no connection; one is {FORMS}") from None

    def fit(self, connection: Connection) -> bool:
        """Return whether a connection is meant."""
        if self._number is not None:
            return connection.number == self._number
        client, server = connection.client, connection.server
        if client is None or server is None:
            return False
        first, *second = self._ends
        orders = ((client, server), (server, client))
        return any(_is(one, first) and all(_is(other, each) for each in second) for one, other in orders)


def _end(text: str) -> tuple[bytes, int | None]:
    """The packed address and the port of an end."""
    found = _END.fullmatch(text)
    if found is None:  # an address of IP version 6 needs its brackets only before a port
        return ipaddress.ip_address(text).packed, None
    port = int(found[3]) if found[3] else None
    if port is not None and port > 65535:
        raise ValueError
    return ipaddress.ip_address(found[1] or found[2]).packed, port


def _is(endpoint: Endpoint, end: tuple[bytes, int | None]) -> bool:
    return endpoint.address == end[0] and end[1] in (None, endpoint.port)
