"""A connection on a blocking socket; `blocking.py amqp://guest:guest@localhost/ TEXT` publishes a message.

Change first: `publish`, which says what to do about each event. `events` is the same for every client.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from time import monotonic
from urllib.parse import unquote, urlsplit

from amqpcodec import rabbitmq as amqp
from amqpcodec.connection import ClientLogin, Connection, ConnectionClosed, Event, Opened, Settled


def events(sock: socket.socket, connection: Connection, login: ClientLogin) -> Iterator[Event]:
    """Write what is to be sent, read what comes, and return what happens, until the connection is closed."""
    while True:
        for event in connection:
            if not login.handle(connection, event):
                yield event
        sock.sendall(connection.data_to_send())
        if connection.state == "closed":
            return
        deadline = connection.next_deadline()
        sock.settimeout(None if deadline is None else max(0.01, deadline - monotonic()))
        try:
            octets = sock.recv(65536)
        except TimeoutError:
            connection.on_time()
        else:
            connection.receive_data(octets) if octets else connection.receive_eof()


def publish(url: str, text: str) -> None:
    """Publish one message to the queue ``hello`` and wait for its confirmation."""
    place = urlsplit(url)
    login = ClientLogin(unquote(place.username or "guest"), unquote(place.password or "guest"))
    connection = Connection("client", amqp)
    with socket.create_connection((place.hostname or "localhost", place.port or 5672)) as sock:
        for event in events(sock, connection, login):
            match event:
                case Opened():
                    channel = connection.open_channel()
                    connection.send(channel, amqp.Queue.Declare(queue="hello", durable=True))
                    connection.send(channel, amqp.Confirm.Select())
                    message = amqp.Basic.Publish(exchange="", routing_key="hello")
                    connection.send_message(channel, message, None, text.encode())
                case Settled():
                    connection.close()
                case ConnectionClosed(reply_code=code, reply_text=reason):
                    print("closed:", code, reason)


if __name__ == "__main__":
    publish(sys.argv[1], sys.argv[2])
