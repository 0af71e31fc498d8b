"""Users: the password of each, until when it holds, and what each may configure, write and read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..reply_errors import AmqpAccessRefused, AmqpNotAllowed
from .versions import REFUSED_SECRET

if TYPE_CHECKING:
    from .clock import Timer
    from .session import Session

Access = Literal["configure", "write", "read"]
ALL = ".*"
DEFAULT_EXCHANGE = "amq.default"  # as permissions and texts name it
EXPIRED = (
    ', backend rabbit_auth_backend_oauth2 returned an error: "Provided JWT token has expired at '
    'timestamp {} (validated at {})"'
)


@dataclass(frozen=True, slots=True)
class User:
    """Holds what there is to know of a user.

    Attributes:
        password: or a token.
        until: the time of the broker's clock at which the token is over; None for a password.
        configure, write, read: patterns of the names of exchanges and queues that it may use so. An empty one
            fits no name.
    """

    password: str
    until: float | None = None
    configure: str = ALL
    write: str = ALL
    read: str = ALL

    def __post_init__(self) -> None:
        for access in ("configure", "write", "read"):
            pattern = getattr(self, access)
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{access}={pattern!r} is no pattern: {error}") from error

    @property
    def is_limited(self) -> bool:
        """Return whether there is something that it may not do, or not for ever."""
        return self.until is not None or (self.configure, self.write, self.read) != (ALL, ALL, ALL)

    def may(self, access: Access, name: str) -> bool:
        """Return whether it may use what has a name."""
        pattern: str = getattr(self, access)
        return pattern != "" and re.search(pattern, name) is not None


class Login:
    """The user of a connection, who keeps what there was at the login until connection.update-secret.

    Attributes:
        name: of the user; empty before the login.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._expiry: Timer | None = None
        self.name = ""
        self._user = User("")

    def take(self, name: str, user: User) -> None:
        """Let a user in, whose connection may end with the token."""
        self.end()
        self.name, self._user = name, user
        session = self._session
        if user.until is not None and session.broker.version.ends_expired:
            text = "CONNECTION_FORCED - credential expired"
            self._expiry = session.clock.call_at(user.until, session.close, 320, text)

    def end(self) -> None:
        """Wait for the end of the token no longer."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def accepts(self, name: str, password: str) -> bool:
        """Let a user in, if the password is right and holds."""
        user = self._session.broker.users.get(name)
        if user is None or user.password != password or self._is_over(user):
            return False
        self.take(name, user)
        return True

    def renew(self, secret: bytes) -> None:
        """Take a new token. One in place of a password is not looked at.

        Raises:
            AmqpNotAllowed: it is not that of the user.
        """
        if self._user.until is None:
            return
        broker, given = self._session.broker, secret.decode("utf-8", "replace")
        user = broker.users.get(self.name)
        if user is None or user.password != given:
            is_known = any(given == each.password for each in broker.users.values())
            raise AmqpNotAllowed(REFUSED_SECRET if is_known else broker.version.wrong_secret)
        if broker.version.ends_expired and self._is_over(user):
            host = self._session.host.name
            raise AmqpNotAllowed(f"access to vhost '{host}' refused for user '{self.name}'{self._why(user)}")
        self.take(self.name, user)

    def _is_over(self, user: User) -> bool:
        return user.until is not None and self._session.clock.time() >= user.until

    def _why(self, user: User) -> str:
        """Return what texts say of a token that is over; nothing of another."""
        if user.until is None or not self._is_over(user):
            return ""
        clock = self._session.clock
        now = int(clock.now().timestamp())
        return EXPIRED.format(now - int(clock.time() - user.until), now)

    def require(self, kind: str, name: str, *accesses: Access) -> None:
        """Let the user go on who may use an exchange or a queue in one way of several.

        Raises:
            AmqpAccessRefused: the user may not; the text names the first of these ways.
        """
        user = self._user
        if not user.is_limited:
            return
        name, why = name or DEFAULT_EXCHANGE, self._why(user)
        if why or not any(user.may(access, name) for access in accesses):
            session = self._session
            access = f"{accesses[0]} access" if session.broker.version.names_access else "access"
            where = f"{kind} '{name}' in vhost '{session.host.name}'"
            raise AmqpAccessRefused(f"{access} to {where} refused for user '{self.name}'{why}")

    def require_any(self, kind: str, name: str) -> None:
        """Let the user go on who may use an exchange or a queue in any way, where that is looked at."""
        if self._session.broker.version.checks_passive:
            self.require(kind, name, "configure", "write", "read")


__all__ = ["ALL", "Login", "User"]
