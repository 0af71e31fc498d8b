"""What a URL of a broker says, and what it may not say."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from amqpcodec.connection import Address, Connection

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("amqp://", {}),
        ("amqp://localhost", {}),
        ("amqp://localhost/", {}),
        ("AMQP://broker", {"host": "broker"}),
        ("amqp://broker:5673", {"host": "broker", "port": 5673}),
        ("amqp://:5673", {"port": 5673}),
        ("amqps://broker", {"host": "broker", "port": 5671, "tls": True}),
        ("amqps://broker:5672", {"host": "broker", "port": 5672, "tls": True}),
        ("amqp://u:p@h/v", {"username": "u", "password": "p", "host": "h", "virtual_host": "v"}),
        ("amqp://u@h", {"username": "u", "host": "h"}),
        ("amqp://u:@h", {"username": "u", "password": "", "host": "h"}),
        ("amqp://u%40x:p%3A%2F%3F%23%25%C3%A9@h", {"username": "u@x", "password": "p:/?#%é", "host": "h"}),
        ("amqp://u:a:b@h", {"username": "u", "password": "a:b", "host": "h"}),
        ("amqp://:@/", {"password": ""}),
        ("amqp://@/", {}),
        ("amqp://u:p@ss@h/v", {"username": "u", "password": "p@ss", "host": "h", "virtual_host": "v"}),
        ("amqp://u@x@h", {"username": "u@x", "host": "h"}),
        ("amqp://u@h/v@w?name=a@b", {
            "username": "u", "host": "h", "virtual_host": "v@w", "connection_name": "a@b",
        }),
        ("amqp://h/%2F", {"host": "h"}),
        ("amqp://h/a%2Fb", {"host": "h", "virtual_host": "a/b"}),
        ("amqp://[::1]/", {"host": "::1"}),
        ("amqp://u:p@[fe80::1]:5673/v", {
            "username": "u", "password": "p", "host": "fe80::1", "port": 5673, "virtual_host": "v",
        }),
        ("amqp://u:p@%2Frun%2Frabbit.sock/v", {
            "username": "u", "password": "p", "socket_path": "/run/rabbit.sock", "virtual_host": "v",
        }),
        ("amqp://h?heartbeat=0&channel_max=7&frame_max=4096", {
            "host": "h", "heartbeat": 0, "channel_max": 7, "frame_max": 4096,
        }),
        ("amqp://h?connection_timeout=2500", {"host": "h", "connect_seconds": 2.5}),
        ("amqp://h?auth_mechanism=EXTERNAL&name=a%20b", {
            "host": "h", "mechanism": "EXTERNAL", "connection_name": "a b",
        }),
        ("amqps://h?cacertfile=/a&certfile=/b&keyfile=/c&verify=verify_none&server_name_indication=n", {
            "host": "h", "port": 5671, "tls": True, "ca_file": "/a", "certificate_file": "/b",
            "key_file": "/c", "verify": False, "server_name": "n",
        }),
    ],
)  # fmt: skip
def test_a_url_says_where_and_how(url: str, expected: dict[str, Any]) -> None:
    assert Address.parse(url) == Address(**expected)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("", "begins with amqp:// or amqps://"),
        ("localhost:5672", "begins with amqp:// or amqps://"),
        ("http://localhost", "begins with amqp:// or amqps://"),
        ("amqp://u:{}@h:port", "a port is a number from 1 to 65535"),
        ("amqp://u:{}@h:0", "a port is a number from 1 to 65535"),
        ("amqp://u:{}@h:65536", "a port is a number from 1 to 65535"),
        ("amqp://u:{}@a..b", "the host in the URL cannot be one: between dots stand 1 to 63 characters"),
        ("amqp://u:{}@" + "x" * 64, "the host in the URL cannot be one"),
        ("amqp://u:{}@h%00", "the host in the URL cannot be one"),
        ("amqp://u:{}@%2Ftmp%2F%00", "the host in the URL cannot be one"),
        ("amqp://u:{}@h:", "a port is a number from 1 to 65535"),
        ("amqp://u:{}@h:٣", "a port is a number from 1 to 65535"),
        ("amqp://u:{}@[::1", "cannot be taken apart"),
        ("amqp://u:{}@[::1]x:1", "cannot be taken apart"),
        ("amqp://u:{}@h#part", "cannot be taken apart"),
        ("amqp://u:{}/more@h", "cannot be taken apart"),
        ("amqp://u:{}?more@h", "cannot be taken apart"),
        ("amqp://u:{}?a={}@h", "cannot be taken apart"),
        ("amqp://u:{}#more@h", "cannot be taken apart"),
        ("amqp://h/v@{}", "cannot be taken apart"),
        ("amqp://h?name={}@b", "cannot be taken apart"),
        ("amqp://u:{}%FF@h", "the password in the URL is not UTF-8"),
        ("amqp://u:{}@h/a/b", "a slash in the name of a virtual host is written %2F"),
        ("amqp://u:{}@h?heartbeat", "the form name=value"),
        ("amqp://u:{}@h?name=%FF", "the form name=value"),
        ("amqp://u:{}@h?heart_beat=1", "unknown parameter 'heart_beat' in the URL; known are heartbeat, "),
        ("amqp://u:{}@h?heartbeat=1&heartbeat=1", "parameter 'heartbeat' stands in the URL twice"),
        ("amqp://u:{}@h?heartbeat=-1", "parameter 'heartbeat' in the URL: must be a number from 0 to 65535"),
        ("amqp://u:{}@h?heartbeat=65536", "must be a number from 0 to 65535"),
        ("amqp://u:{}@h?channel_max=0", "must be a number from 1 to 65535"),
        ("amqp://u:{}@h?frame_max=4095", "must be a number from 4096 to "),
        ("amqp://u:{}@h?connection_timeout=0", "must be a number of milliseconds from 1 to "),
        ("amqp://u:{}@h?auth_mechanism=magic", "must be plain or amqplain or external"),
        ("amqp://u:{}@h?name=", "must not be empty"),
        ("amqps://u:{}@h?verify=yes", "must be verify_peer or verify_none"),
        ("amqp://u:{}@h?verify=verify_none&certfile=x", "not amqp://: certfile, verify"),
    ],
)
def test_what_is_no_such_url_is_refused_without_its_password(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        Address.parse(url.replace("{}", SECRET))
    assert reason in str(caught.value)
    shown = [str(caught.value), repr(caught.value), *map(repr, caught.value.args)]
    assert not any(SECRET in text for text in shown)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_an_address_shows_no_password() -> None:
    address = Address.parse(f"amqp://u:{SECRET}@h:1/v")
    assert str(address) == "h:1, virtual host 'v'"
    assert SECRET not in repr(address)
    assert str(Address.parse("amqp://%2Frun%2Fx")) == "/run/x, virtual host '/'"
    assert SECRET not in repr(address.login())


def test_an_address_has_a_login() -> None:
    login = Address.parse("amqp://u:p@h/v?auth_mechanism=amqplain&name=mine").login()
    assert (login.username, login.password, login.virtual_host) == ("u", "p", "v")
    assert (login.mechanism, login.response, login.connection_name) == ("AMQPLAIN", None, "mine")
    external = Address.parse("amqps://h?auth_mechanism=external").login()
    assert (external.mechanism, external.response) == ("EXTERNAL", b"")


def test_an_address_has_options_for_a_connection() -> None:
    assert Address().options() == {}
    options = Address.parse("amqp://h?heartbeat=3&channel_max=9&frame_max=8192").options()
    assert options == {"heartbeat": 3, "channel_max": 9, "frame_max": 8192}
    assert Connection("client", **options).role == "client"


def test_tls_verifies_the_server_unless_it_is_told_not_to() -> None:
    assert Address.parse("amqp://h").tls_context() is None
    context = Address.parse("amqps://h").tls_context()
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    careless = Address.parse("amqps://h?verify=verify_none").tls_context()
    assert careless is not None
    assert (careless.verify_mode, careless.check_hostname) == (ssl.CERT_NONE, False)


@pytest.mark.parametrize("parameter", ["cacertfile", "certfile"])
def test_a_certificate_that_is_not_there_is_an_os_error(parameter: str) -> None:
    with pytest.raises(OSError, match="No such file"):
        Address.parse(f"amqps://h?{parameter}=/no/such/file").tls_context()
