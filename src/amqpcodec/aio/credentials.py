"""Credentials that take the place of those of a URL."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..connection import ClientLogin

if TYPE_CHECKING:
    from ..connection import Address


@dataclass(frozen=True, slots=True)
class Credentials:
    """A login, or a token.

    Attributes:
        password: of the user, or the token, which `repr` does not show.
        username: of the user; empty where a token says who it is.
        seconds: for which they hold; None for any time.
    """

    password: str = field(repr=False)
    username: str = ""
    seconds: float | None = None

    def login_at(self, address: Address) -> ClientLogin:
        """Return a client's part of the handshake: all else is what a URL says."""
        login = address.login()
        login.username, login.password = self.username, self.password
        return login


__all__ = ["Credentials"]
