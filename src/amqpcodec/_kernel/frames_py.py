"""The frame decoder. One text for both builds: frames_c is this file, compiled."""

from __future__ import annotations

from .._typing import TYPE_CHECKING, Any
from .records_py import ContentHeader
from .stream_py import StreamDecoder
from .wire import BODY, HEADER, METHOD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

    from .records_py import Frame


class FrameDecoder(StreamDecoder):
    """Turns a stream of octets into frames; knows nothing of sockets.

    Args:
        frame_max: octets of the largest frame to take, envelope included, as negotiated in
            connection.tune; 0 for no limit but that of `limits`.
        frame_max_slack: octets by which a frame may exceed frame_max; RabbitMQ forgives 8.
        tables: ``"dict"`` for plain dicts; ``"raw"`` for `RawTable`, which keeps the octets.
        profile: name of a table profile in place of the dialect's own, see `amqpcodec.profiles`.
        strict: refuse what a broker should: text that is not UTF-8 or holds zero octets, table tags not
            of the profile, keys that occur twice, property flags without a property, a weight, methods
            on the wrong channel, values that break an assert.
        limits: what is refused whatever was negotiated.

    Iterating raises `DecodeError` on octets that break the protocol, after every frame before them was
    given out. The decoder then stays failed: it raises the same error again until `reset`, or until
    `skip_frame` where the error is not fatal. What is fed meanwhile is kept.

    Source: 0-9-1 section 4.2.3; the reply codes follow section 4.8 and RabbitMQ.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        def feed(self, data: ReadableBuffer) -> Iterator[Frame]: ...
        def buffer_updated(self, nbytes: int) -> Iterator[Frame]: ...
        def __iter__(self) -> Iterator[Frame]: ...
        def __next__(self) -> Frame: ...

    def _next(self) -> Any:
        if not self._advance():
            return None
        reader = self._reader
        frame_type = reader.frame_type
        if frame_type == METHOD:
            return self._frame(METHOD, reader.channel, self._read_method())
        if frame_type == HEADER:
            return self._frame(HEADER, reader.channel, self._header())
        if frame_type == BODY:
            return self._frame(BODY, reader.channel, self._read_body())
        return self._read_other()

    def _header(self) -> ContentHeader:
        header = ContentHeader.__new__(ContentHeader)
        header.properties = self._read_properties()
        header.body_size = self._reader.body_size
        header.weight = self._reader.weight
        return header
