"""``python -m layer CLIENT publish|consume URL QUEUE COUNT``: prints a line of JSON."""

from __future__ import annotations

import json
import sys
from importlib import import_module

from support.clients.__main__ import status

from . import Clock


def main(client: str, action: str, url: str, queue: str, count: int) -> None:
    """Do it, and print CPU time a message and what `amqpcodec.compat` says of itself."""
    module = import_module(f"{__package__}.{client}")
    clock = Clock()
    getattr(module, action)(url, queue, count, clock)
    print(json.dumps({"microseconds": clock.seconds * 1e6 / count, "status": status()}))


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]))  # type: ignore[call-arg]
