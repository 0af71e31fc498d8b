"""Where a broker is, and who comes: what a URL says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from .._typing import TYPE_CHECKING, Any
from .login import ClientLogin

if TYPE_CHECKING:
    import ssl

_PORTS = {"amqp": 5672, "amqps": 5671}
_ESCAPES = "what a URL gives a meaning (/ ? # @ : %) is percent-escaped in names and passwords"


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """A broker's address with all that a URL may say about a connection.

    A URL is ``amqp://user:password@host:port/virtual-host?parameter=value``; that of an encrypted connection
    begins with ``amqps``. What is left out has the default below. A host that begins with an escaped slash,
    such as ``%2Frun%2Frabbitmq.sock``, is the path of a Unix socket. Neither errors nor `repr` show the
    password.

    Args:
        host, port: where to connect to.
        socket_path: a Unix socket in their place.
        tls: whether the connection is encrypted.
        username, password: for the mechanisms PLAIN and AMQPLAIN.
        virtual_host: to open.
        mechanism: the login mechanism; None for PLAIN or AMQPLAIN, whichever the server offers.
        connection_name: that the broker shows to its administrators.
        heartbeat: seconds, 0 for none; None for the default of `Connection`, as for the next two.
        channel_max: the highest number of a channel.
        frame_max: octets of the largest frame.
        connect_seconds: within which the connection has to be there, TLS included.
        ca_file: certificates to trust, in place of those of the system.
        certificate_file, key_file: the client's own.
        verify: whether the server's certificate is checked.
        server_name: that the certificate has to be of; None for the host.

    Source: the URI specification of RabbitMQ, and its page on query parameters.
    """

    host: str = "localhost"
    port: int = 5672
    socket_path: str | None = None
    tls: bool = False
    username: str = "guest"
    password: str = field(default="guest", repr=False)
    virtual_host: str = "/"
    mechanism: str | None = None
    connection_name: str | None = None
    heartbeat: int | None = None
    channel_max: int | None = None
    frame_max: int | None = None
    connect_seconds: float = 30.0
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    verify: bool = True
    server_name: str | None = None

    @classmethod
    def parse(cls, url: str) -> Address:
        """Return the address that a URL stands for.

        Raises:
            TypeError: it is no text.
            ValueError: it cannot be taken apart, or has a parameter that is not known.
        """
        if not isinstance(url, str):
            raise TypeError(f"a URL must be a str, not {type(url).__name__}")
        try:
            parts = urlsplit(url)
        except ValueError:
            raise ValueError(f"the URL cannot be taken apart; {_ESCAPES}") from None
        if parts.scheme not in _PORTS:
            raise ValueError("a URL of a broker begins with amqp:// or amqps://")
        if parts.fragment or ("@" not in parts.netloc and "@" in parts.path + parts.query):
            raise ValueError(f"the URL cannot be taken apart; {_ESCAPES}")
        given = {**_place(parts), **_parameters(parts.query)}
        if not given["tls"] and (needless := sorted(given.keys() & _OF_TLS.keys())):
            names = ", ".join(_OF_TLS[name] for name in needless)
            raise ValueError(
                f"a URL that begins with amqps:// has the parameters of TLS, not amqp://: {names}"
            )
        if "key_file" in given and "certificate_file" not in given:
            raise ValueError("keyfile in the URL is that of a certificate, which certfile names")
        return cls(**given)

    def __str__(self) -> str:
        """Return the address as it may be shown: without the password."""
        return f"{self.socket_path or f'{self.host}:{self.port}'}, virtual host {self.virtual_host!r}"

    def login(self) -> ClientLogin:
        """Return a client's part of the handshake."""
        return ClientLogin(
            self.username,
            self.password,
            self.virtual_host,
            mechanism=self.mechanism,
            response=b"" if self.mechanism == "EXTERNAL" else None,  # the certificate says who it is
            connection_name=self.connection_name,
        )

    def options(self) -> dict[str, Any]:
        """Return the options of `Connection` that were given."""
        wishes = {"heartbeat": self.heartbeat, "channel_max": self.channel_max, "frame_max": self.frame_max}
        return {name: wish for name, wish in wishes.items() if wish is not None}

    def tls_context(self) -> ssl.SSLContext | None:
        """Return the context for TLS; None without TLS. It verifies the server unless `verify` is False.

        Raises:
            OSError: a file is not there, or holds no certificate. `ssl.SSLError` is one, too.
        """
        if not self.tls:
            return None
        import ssl  # of no use without I/O, and not everywhere

        files = [name for name in (self.ca_file, self.certificate_file, self.key_file) if name is not None]
        for name in files:
            with open(name, "rb"):  # whose error names the file, which those of TLS do not
                pass
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.certificate_file is not None:
                context.load_cert_chain(self.certificate_file, self.key_file)
        except ssl.SSLError as error:
            raise ssl.SSLError(error.errno, f"{error.strerror}: {', '.join(files)}") from None
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _place(parts: SplitResult) -> dict[str, Any]:
    """Return what stands before the query."""
    user, _, place = parts.netloc.rpartition("@")
    name, colon, password = user.partition(":")
    host, port = _host_and_port(place)
    given: dict[str, Any] = {"tls": parts.scheme == "amqps", "port": port or _PORTS[parts.scheme]}
    if name:
        given["username"] = _unescaped(name, "user name")
    if colon:
        given["password"] = _unescaped(password, "password")
    if host.startswith("/"):
        given["socket_path"] = host
    elif host:
        given["host"] = host
    path = parts.path[1:]
    if "/" in path:
        raise ValueError("a slash in the name of a virtual host is written %2F")
    if path:
        given["virtual_host"] = _unescaped(path, "virtual host")
    return given


def _host_and_port(place: str) -> tuple[str, int | None]:
    """Return the host, which may be an IPv6 address in brackets, and the port, if there is one."""
    if place.startswith("["):
        host, _, rest = place[1:].partition("]")
        before, colon, port = rest.partition(":")
        if before:
            raise ValueError(f"the host cannot be taken apart; {_ESCAPES}")
    else:
        host, colon, port = place.partition(":")
    if colon and not (port.isascii() and port.isdigit() and 0 < int(port[:9]) < 1 << 16):
        raise ValueError(f"a port is a number from 1 to 65535; {_ESCAPES}")
    return _nameable(_unescaped(host, "host")), int(port) if colon else None


def _nameable(host: str) -> str:
    """Return a host, or the path of a socket, that the system can be asked for."""
    try:
        octets = host.encode("utf-8" if host.startswith("/") else "idna")
    except UnicodeError:
        octets = b"\0"
    if b"\0" in octets:
        raise ValueError("the host in the URL cannot be one: between dots stand 1 to 63 characters")
    return host


def _unescaped(text: str, what: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise ValueError(f"the {what} in the URL is not UTF-8") from None


def _parameters(query: str) -> dict[str, Any]:
    """Return what the query says."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, errors="strict")
    except ValueError:
        raise ValueError("the query of a URL has the form name=value&name=value, in UTF-8") from None
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name not in _PARAMETERS:
            raise ValueError(f"unknown parameter {name!r} in the URL; known are {', '.join(_PARAMETERS)}")
        attribute, read = _PARAMETERS[name]
        if attribute in given:
            raise ValueError(f"parameter {name!r} stands in the URL twice")
        try:
            given[attribute] = read(value)
        except ValueError as error:
            raise ValueError(f"parameter {name!r} in the URL: {error}") from None
    return given


def _number(least: int, most: int, what: str = "number") -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text[:12]) <= most):
            raise ValueError(f"must be a {what} from {least} to {most}")
        return int(text)

    return read


def _seconds(text: str) -> float:
    return _number(1, 10**9, "number of milliseconds")(text) / 1000


def _one_of(values: dict[str, Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        if text.lower() not in values:
            raise ValueError(f"must be {' or '.join(values)}")
        return values[text.lower()]

    return read


def _text(text: str) -> str:
    if not text:
        raise ValueError("must not be empty")
    return text


# By the names that RabbitMQ gives them, and that of aio-pika for a connection's name.
_PARAMETERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "heartbeat": ("heartbeat", _number(0, 65535)),
    "channel_max": ("channel_max", _number(1, 65535)),
    "frame_max": ("frame_max", _number(4096, 2**32 - 1)),
    "connection_timeout": ("connect_seconds", _seconds),
    "auth_mechanism": (
        "mechanism",
        _one_of({name: name.upper() for name in ("plain", "amqplain", "external")}),
    ),
    "name": ("connection_name", _text),
    "cacertfile": ("ca_file", _text),
    "certfile": ("certificate_file", _text),
    "keyfile": ("key_file", _text),
    "verify": ("verify", _one_of({"verify_peer": True, "verify_none": False})),
    "server_name_indication": ("server_name", _text),
}
# The parameters of TLS by attribute.
_OF_TLS = {
    attribute: name
    for name, (attribute, _) in _PARAMETERS.items()
    if attribute in ("ca_file", "certificate_file", "key_file", "verify", "server_name")
}


__all__ = ["Address"]
