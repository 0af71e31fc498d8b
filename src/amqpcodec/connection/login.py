"""The two sides of the handshake, for programs that have nothing special to say in it.

They only send methods that a program could send itself, and keep what belongs to one connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine

from amqpcodec import decode_pairs

from .._kernel.values import utf8
from .._protocol.codes import ACCESS_REFUSED, NOT_ALLOWED
from .._typing import TYPE_CHECKING, Any
from .._version import __version__
from ..errors import EncodeError, LocalProtocolError
from .events import MethodReceived, ProtocolHeaderReceived

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .events import Event
    from .machine_py import Connection

_CAPABILITIES = {
    "publisher_confirms": True,
    "exchange_exchange_bindings": True,
    "basic.nack": True,
    "consumer_cancel_notify": True,
    "connection.blocked": True,
    "authentication_failure_close": True,
}
_PRODUCT = {"product": "amqpcodec", "version": __version__, "platform": "Python"}


def _own_properties(connection: Connection) -> dict[str, Any]:
    """Return what a side tells of itself where the program says nothing else."""
    if connection.dialect.DIALECT.profile.name != "rabbitmq":
        return dict(_PRODUCT)  # booleans and nested tables came with 0-9-1
    return {**_PRODUCT, "capabilities": _CAPABILITIES}


class ClientLogin:
    """A client's part of the handshake: it logs in, agrees to limits, and opens a virtual host.

    Args:
        username, password: for the mechanisms PLAIN and AMQPLAIN.
        virtual_host: to open.
        mechanism: the login mechanism; None for PLAIN or AMQPLAIN, whichever the server offers.
        response: the login data of another mechanism.
        locale: for the texts of the server.
        client_properties: in place of the product and the usual capabilities.
        connection_name: added to them; the broker shows it to its administrators.
    """

    def __init__(
        self,
        username: str = "guest",
        password: str = "guest",
        virtual_host: str = "/",
        *,
        mechanism: str | None = None,
        response: bytes | None = None,
        locale: str = "en_US",
        client_properties: Mapping[str, Any] | None = None,
        connection_name: str | None = None,
    ) -> None:
        self.username = username
        self.password = password
        self.virtual_host = virtual_host
        self.mechanism = mechanism
        self.response = response
        self.locale = locale
        self.client_properties = client_properties
        self.connection_name = connection_name

    def handle(self, connection: Connection, event: Event) -> bool:
        """Answer an event of the handshake.

        Args:
            connection: where the event came from.
            event: any event.

        Returns:
            Whether the event was answered here. `Opened` is not: it is the program's to act on.

        Raises:
            LocalProtocolError: the server offers no mechanism that this client can use.
        """
        if not isinstance(event, MethodReceived) or event.channel != 0:
            return False
        method: Any = event.method
        classes = connection.dialect.Connection
        match method.spec.name:
            case "connection.start":
                connection.send(0, self._start_ok(connection, method))
            case "connection.tune":
                connection.send(0, connection.tune_ok())
                connection.send(0, classes.Open(self.virtual_host))
            case _:
                return False
        return True

    def _start_ok(self, connection: Connection, start: Any) -> Any:
        offered = bytes(start.mechanisms).decode("ascii", "replace").split()
        mechanism = self.mechanism or next((name for name in ("PLAIN", "AMQPLAIN") if name in offered), None)
        if mechanism is None or mechanism not in offered:
            raise LocalProtocolError(f"the server offers the mechanisms {offered}", ACCESS_REFUSED)
        properties = self.client_properties
        if properties is None:
            properties = _own_properties(connection)
        if self.connection_name is not None:
            properties = {**properties, "connection_name": self.connection_name}
        response = self._login_data(connection, mechanism)
        return connection.dialect.Connection.StartOk(properties, mechanism, response, self.locale)

    def _login_data(self, connection: Connection, mechanism: str) -> bytes:
        if self.response is not None:
            return self.response
        if mechanism == "PLAIN":
            return b"\0%b\0%b" % (utf8(self.username, "response"), utf8(self.password, "response"))
        table = {"LOGIN": self.username, "PASSWORD": self.password}
        octets: bytes = connection.dialect.encode_table(table)
        return octets[4:]  # a table without its length


class ServerLogin:
    """A server's part of the handshake: it offers mechanisms, checks who comes, and opens a virtual host.

    Args:
        check: takes user name and password; returns whether they may enter. It may be a coroutine function
            where `amqpcodec.aio` serves.
        virtual_hosts: those that there are; None for any.
        server_properties: in place of the product and the usual capabilities.
        mechanisms: of PLAIN and AMQPLAIN.
        locales: offered.
    """

    def __init__(
        self,
        check: Callable[[str, str], bool | Awaitable[bool]],
        *,
        virtual_hosts: frozenset[str] | None = None,
        server_properties: Mapping[str, Any] | None = None,
        mechanisms: str = "PLAIN AMQPLAIN",
        locales: str = "en_US",
    ) -> None:
        self.check = check
        self.virtual_hosts = virtual_hosts
        self.server_properties = server_properties
        self.mechanisms = mechanisms
        self.locales = locales

    def handle(self, connection: Connection, event: Event) -> bool:
        """Answer an event of the handshake.

        Args:
            connection: where the event came from.
            event: any event.

        Returns:
            Whether the event was answered here.

        Raises:
            TypeError: the check has returned a coroutine.
        """
        classes = connection.dialect.Connection
        match event:
            case ProtocolHeaderReceived(accepted=True):
                connection.send(0, self._start(connection))
            case MethodReceived(0, classes.StartOk() as start_ok):
                admitted = self.checked(connection, start_ok)
                if not isinstance(admitted, bool):
                    if isinstance(admitted, Coroutine):
                        admitted.close()
                    raise TypeError("the check is a coroutine function, which only amqpcodec.aio awaits")
                self.admit(connection, admitted)
            case MethodReceived(0, classes.TuneOk()):
                pass
            case MethodReceived(0, classes.Open(virtual_host=name)):
                if self.virtual_hosts is None or name in self.virtual_hosts:
                    connection.send(0, classes.OpenOk())
                else:
                    # Named by its ASCII, which no escaping can make longer than a short string.
                    shown = str(name).encode("ascii", "replace").decode()[:127]
                    connection.close(NOT_ALLOWED, f"NOT_ALLOWED - no virtual host {shown}")
            case _:
                return False
        return True

    def _start(self, connection: Connection) -> Any:
        properties = self.server_properties
        if properties is None:
            properties = _own_properties(connection)
        major, minor, _ = connection.dialect.DIALECT.version
        return connection.dialect.Connection.Start(
            major, minor, properties, utf8(self.mechanisms, "mechanisms"), utf8(self.locales, "locales")
        )

    def checked(self, connection: Connection, start_ok: Any) -> bool | Awaitable[bool]:
        """Return whether somebody may enter, or what the check returns to be awaited.

        Args:
            connection: where the method came from.
            start_ok: the client's connection.start-ok.
        """
        known = credentials(connection, start_ok) if start_ok.mechanism in self.mechanisms.split() else None
        if known is None:
            return False
        verdict = self.check(*known)
        return verdict if isinstance(verdict, Awaitable) else bool(verdict)

    def admit(self, connection: Connection, admitted: bool) -> None:
        """Go on with the handshake, or close the connection with 403 access-refused."""
        if admitted:
            connection.send(0, connection.tune())
        else:
            connection.close(ACCESS_REFUSED, "ACCESS_REFUSED - login was refused")


def credentials(connection: Connection, start_ok: Any) -> tuple[str, str] | None:
    """User name and password in a connection.start-ok.

    Args:
        connection: where it came from.
        start_ok: the method; its mechanism is PLAIN or AMQPLAIN.

    Returns:
        Both, or None if they cannot be read.
    """
    response = bytes(start_ok.response)
    if start_ok.mechanism == "PLAIN":
        parts = response.split(b"\0")
        if len(parts) != 3:
            return None
        return parts[1].decode("utf-8", "replace"), parts[2].decode("utf-8", "replace")
    if start_ok.mechanism != "AMQPLAIN":
        return None
    try:
        table = decode_pairs(response, connection.dialect.DIALECT.profile.name)
    except (EncodeError, ValueError):
        return None
    name, password = table.get("LOGIN"), table.get("PASSWORD")
    return (name, password) if isinstance(name, str) and isinstance(password, str) else None


__all__ = ["ClientLogin", "ServerLogin", "credentials"]
