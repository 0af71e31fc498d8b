"""Connections on asyncio: as a client to a broker, as a server to its clients."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from socket import gaierror
from typing import TYPE_CHECKING, Any, TypeVar

from ..connection import Address, ClientLogin, Connection, ConnectionClosed, Opened, ServerLogin
from ..errors import AmqpError, ConnectionLostError, ReplyError
from ..reply_errors import REPLY_ERRORS
from .blame import may_pass
from .checks import check_hosts, check_names, check_values
from .credentials import Credentials
from .stream import AmqpStream

if TYPE_CHECKING:
    from socket import socket
    from ssl import SSLContext

    from ..record import Recorder

_T = TypeVar("_T")
_TLS_HINTS = {
    "WRONG_VERSION_NUMBER": "the server does not speak TLS on this port: use amqp:// and no ssl, or its port "
    "for TLS, which mostly is 5671",
    "CERTIFICATE_VERIFY_FAILED": "in the URL, cacertfile names the authorities to trust, and "
    "server_name_indication the server",
}  # by the reason of an error of TLS


async def connect(
    host: str | Sequence[str],
    port: int | None = None,
    *,
    login: ClientLogin | Credentials | None = None,
    ssl: SSLContext | bool | None = None,
    server_hostname: str | None = None,
    sock: socket | None = None,
    timeout: float | None = None,
    record: Recorder | None = None,
    **options: Any,
) -> AmqpStream:
    """Connect to a server and log in.

    Args:
        host: where the server is: a host; or a URL, as `Address` describes it; or several of either, to be
            tried in turn.
        port: its port; None for that of the URL, or 5672, or 5671 with TLS.
        login: who comes; None for whom the URL names, or for the default of `ClientLogin`. `Credentials` take
            the place of the name and the password alone.
        ssl: a context, or True for the system's; None for what the URL says. False is no TLS.
        server_hostname: that the server's certificate has to be of; None for that of the URL, or the host.
        sock: a socket that is connected already; `host` says no more than the name and the login then.
        timeout: seconds within which the connection has to be there, TLS included; None for those of
            the URL, or 30. The handshake of AMQP has a limit of its own, in `ConnectionLimits`.
        record: records what is sent and received, also where it is encrypted.
        options: as for `Connection`; they count more than the URL.

    Returns:
        The stream, with the connection open.

    Raises:
        ReplyError: the server has closed the connection, or what it sends is not AMQP: of the class for the
            reply code. The next server is tried only where this one ends, with 320 or 541, or has no place
            among its connections.
        ConnectionLostError: the server has ended the stream without a close, or takes too long; or none of
            several could be reached, and the text says why of each.
        OSError: there is no connection. A ConnectionLostError is one, too, as are the errors of TLS.
        TypeError: an option that there is not, or a value of another type.
        ValueError: a URL that cannot be read, or an option out of range.
    """
    addresses = [address_of(each, port, ssl) for each in check_hosts(host)]
    if sock is not None and len(addresses) > 1:
        raise ValueError("a socket is of one server: name one")
    check_options({"login": login, "ssl": ssl, "timeout": timeout, "record": record, **options})
    failures: list[tuple[Address, Exception]] = []
    for address in addresses:
        own = login.login_at(address) if isinstance(login, Credentials) else login or address.login()
        stream = _stream(own, {**address.options(), **options}, record)
        seconds = address.connect_seconds if timeout is None else timeout
        late = ConnectionLostError(f"no connection to {address} within {seconds:g} seconds")
        try:
            await _open(
                stream, in_time(_transport(stream, address, ssl, server_hostname, sock), seconds, late)
            )
            return stream
        except (OSError, ReplyError) as error:
            if not (isinstance(error, OSError) or may_pass(error)):
                raise
            explain(error, address)
            failures.append((address, error))
    if len(failures) == 1:
        raise failures[0][1]
    reasons = "; ".join(f"{address}: {error}" for address, error in failures)
    raise ConnectionLostError(f"no server could be reached: {reasons}") from failures[-1][1]


def check_options(given: Mapping[str, Any], *functions: Callable[..., Any]) -> None:
    """Refuse options that `connect` cannot take, before there is a socket.

    Args:
        given: the options, by name.
        functions: the one that was called, if that was not `connect`.

    Raises:
        TypeError: a name that is no option, or a value of another type.
        ValueError: a value out of range.
    """
    check_values(given)
    own = ("port", "login", "ssl", "server_hostname", "sock", "timeout", "record")
    options = {name: value for name, value in given.items() if name not in own}
    try:
        Connection("client", **options)
    except TypeError:
        check_names(options, *functions, connect, Connection)
        raise


def address_of(host: str, port: int | None, ssl: SSLContext | bool | None) -> Address:
    """Return the address of a host or URL.

    Raises:
        ValueError: it is neither.
    """
    if "://" in host:
        address = Address.parse(host)
        return address if port is None else replace(address, port=port)
    if "@" in host or "/" in host:  # which may be a password, and would be shown
        raise ValueError("neither a host nor a URL, which begins with amqp:// or amqps://")
    if host.count(":") == 1:  # an IPv6 address has more
        raise ValueError(f"a host has no port in it: write amqp://{host}, or give the port by itself")
    if port is None:
        port = 5671 if ssl else 5672
    return Address(host=host, port=port)


def explain(error: Exception, address: Address) -> None:
    """Have the text of an error of connecting say which place it is about, or what to do."""
    hint = repr(address.host)
    if not isinstance(error, gaierror):
        hint = _TLS_HINTS.get(str(getattr(error, "reason", "")), "")
    if hint and isinstance(error, OSError):
        error.strerror = f"{error.strerror}: {hint}"
        error.args = (error.errno, error.strerror)


def _stream(login: ClientLogin, options: dict[str, Any], record: Recorder | None) -> AmqpStream:
    clock = asyncio.get_running_loop().time
    return AmqpStream(Connection("client", **{"clock": clock, **options}), login, record=record)


async def _transport(
    stream: AmqpStream,
    address: Address,
    ssl: SSLContext | bool | None,
    server_hostname: str | None,
    sock: socket | None,
) -> None:
    """Give a stream a transport."""

    def make() -> AmqpStream:
        return stream

    loop = asyncio.get_running_loop()
    tls = (address.tls_context() if ssl is None else ssl) or None
    name = None if tls is None else server_hostname or address.server_name or address.host
    if sock is not None:
        await loop.create_connection(make, sock=sock, ssl=tls, server_hostname=name)
    elif address.socket_path is not None:
        await loop.create_unix_connection(make, address.socket_path, ssl=tls, server_hostname=name)
    else:
        await loop.create_connection(make, address.host, address.port, ssl=tls, server_hostname=name)


async def in_time(answer: Awaitable[_T], seconds: float | None, error: Exception) -> _T:
    """Return what is awaited; raise an error where it takes longer than that, with None for any time."""
    try:
        async with asyncio.timeout(seconds) as limit:
            return await answer
    except TimeoutError:
        if not limit.expired():
            raise  # the system's own
        raise error from None


def reply_error(code: int, text: str, class_id: int = 0, method_id: int = 0) -> ReplyError:
    """Return the exception for a reply code."""
    error = REPLY_ERRORS.get(code, ReplyError)(text)
    error.class_id, error.method_id = class_id, method_id
    return error


def closed_error(event: ConnectionClosed, reason: Exception | None) -> AmqpError:
    """Return the exception for the end of a connection; `reason` is why the transport is gone."""
    if event.by in ("eof", "timeout"):
        error = ConnectionLostError(event.reply_text)
        error.__cause__ = reason
        return error
    return reply_error(event.reply_code, event.reply_text, event.class_id, event.method_id)


async def _open(stream: AmqpStream, transport: Awaitable[None]) -> None:
    """Wait until a stream has its transport, and the connection is open."""
    try:
        await transport
        async for event in stream:
            match event:
                case Opened():
                    return
                case ConnectionClosed():
                    raise closed_error(event, stream.reason)
        raise ConnectionLostError("the connection is lost") from stream.reason
    except BaseException:
        await stream.leave()
        raise


async def serve(
    handler: Callable[[AmqpStream], Awaitable[None]],
    host: str | None,
    port: int,
    *,
    login: ServerLogin | None = None,
    ssl: Any = None,
    **options: Any,
) -> asyncio.Server:
    """Serve connections.

    Args:
        handler: called with the stream of each connection, as a task of its own.
        host, port: where to listen.
        login: who may enter; None to leave the handshake to the handler.
        ssl: a context for TLS; None for none.
        options: as for `Connection`.

    Returns:
        The server, which listens.
    """
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        lambda: AmqpStream(Connection("server", clock=loop.time, **options), login, handler),
        host, port, ssl=ssl,
    )  # fmt: skip


__all__ = ["connect", "serve"]
