"""Connections of pika that no socket belongs to: a test hands them what a broker would send."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

from .engine import Copy


@cache
def offline(peer: Copy) -> Any:
    """A class of connections of this copy of pika, which keep what they would send."""

    class Offline(peer.connection.Connection):  # type: ignore[misc,name-defined]
        def __init__(self, **arguments: Any) -> None:
            self.sent: list[bytes] = []
            self._transport = SimpleNamespace(write=self.sent.append)
            super().__init__(**arguments)

        def _adapter_connect_stream(self) -> None:
            pass

        def _adapter_disconnect_stream(self) -> None:
            pass

        def _adapter_call_later(self, delay: float, callback: Callable[[], None]) -> object:
            return object()

        def _adapter_remove_timeout(self, timeout_id: object) -> None:
            pass

        def _adapter_add_callback_threadsafe(self, callback: Callable[[], None]) -> None:
            callback()

        _adapter_emit_data = getattr(peer, "adapters.base_connection").BaseConnection._adapter_emit_data

    return Offline


def octets_of(peer: Copy, *methods: Any, channel: int = 0) -> bytes:
    """Methods as a broker would send them."""
    return b"".join(peer.frame.Method(channel, method).marshal() for method in methods)


def consumer(peer: Copy, callback: Callable[..., None], **parameters: Any) -> Any:
    """A connection with an open channel on which messages go to a callback."""
    spec = peer.spec
    connection = offline(peer)(parameters=peer.connection.ConnectionParameters(**parameters))
    connection._on_stream_connected()
    start = spec.Connection.Start(0, 9, {"capabilities": {"basic.nack": True}}, b"PLAIN", b"en_US")
    connection._on_data_available(octets_of(peer, start))
    connection._on_data_available(octets_of(peer, spec.Connection.Tune(100, 131072, 0)))
    connection._on_data_available(octets_of(peer, spec.Connection.OpenOk()))
    channel = connection.channel()
    connection._on_data_available(octets_of(peer, spec.Channel.OpenOk(), channel=1))
    channel.basic_consume("a queue", callback, consumer_tag="ctag")
    connection._on_data_available(octets_of(peer, spec.Basic.ConsumeOk("ctag"), channel=1))
    assert connection.is_open
    assert channel.is_open
    return connection


def delivery(peer: Copy, tag: int, body: bytes = b"x" * 256, **properties: Any) -> bytes:
    """A message as a broker would send it."""
    spec, frame = peer.spec, peer.frame
    deliver = spec.Basic.Deliver("ctag", tag, False, "an exchange", "a.routing.key")
    header = frame.Header(1, len(body), spec.BasicProperties(**properties))
    parts = [frame.Method(1, deliver), header, *([frame.Body(1, body)] if body else [])]
    return b"".join(part.marshal() for part in parts)
