"""AMQP as Arrow columns: decodes streams and captures to record batches, and encodes messages to frames.

    from amqpcodec import arrow

    batch = arrow.decode_messages(octets)
    for batch in arrow.read_capture("trace.pcapng", "messages", columns=["ts", "exchange", "body_size"]):
        ...
    octets = arrow.encode_messages(batch)

docs/columns.md describes the tables. It needs pyarrow, the extra ``arrow``.
"""

from __future__ import annotations

try:
    import pyarrow  # noqa: F401  # imported here, so that the error below says what to install
except ImportError as error:
    raise ImportError('amqpcodec.arrow needs pyarrow: pip install "amqpcodec[arrow]"') from error

from .arrays import schema
from .binary import ValueDecoder, decode_values, encode_values
from .decoding import BatchDecoder, decode_frames, decode_messages, decode_methods
from .encoding import StreamWriter, encode_messages
from .reading import CaptureReader, read_capture, read_stream
from .recording import CaptureWriter
from .session import CaptureSession, scan_capture

__all__ = [
    "BatchDecoder",
    "CaptureReader",
    "CaptureSession",
    "CaptureWriter",
    "StreamWriter",
    "ValueDecoder",
    "decode_frames",
    "decode_messages",
    "decode_methods",
    "decode_values",
    "encode_messages",
    "encode_values",
    "read_capture",
    "read_stream",
    "scan_capture",
    "schema",
]
