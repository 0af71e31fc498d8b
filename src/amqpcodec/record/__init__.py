"""Records connections to captures: those of a program, or those that pass a proxy.

    with Recorder("trace.pcap") as recorder:
        async with aio.Client("amqps://broker/", record=recorder) as client: ...

A `Recorder` has what is sent and received written as if its packets had been recorded, so that encrypted
connections need no keys. A `Proxy` stands between clients and a broker and records what passes.
"""

from __future__ import annotations

from .proxy import Proxy
from .recorder import Recorder, RecorderStats, Recording

__all__ = ["Proxy", "Recorder", "RecorderStats", "Recording"]
