"""A client library that uses amqpcodec where it is installed, and is what it has always been otherwise.

The library takes this file over as a module of its own, `_speedups.py`. Change first: the three constants, to
its own names. The last line of its `__init__.py` is `from . import _speedups`, and an extra brings amqpcodec:
`pip install 'pika[speedups]'`. Nothing else in the library changes, and nothing depends on amqpcodec.
"""

from __future__ import annotations

import os

PEER = "pika"  # the library that decodes: pamqp, pika or amqp
LOOPS = True  # how it uses sockets, too
OFF = "PIKA_NO_SPEEDUPS"  # a variable of the environment


def begin() -> bool:
    """Put compiled functions in the place of the library's; return whether there are any.

    A function that amqpcodec does not know, since this release has changed it, stays the library's own.
    """
    if os.environ.get(OFF):
        return False
    try:
        from amqpcodec import IMPL, compat
    except ImportError:
        return False
    if IMPL == "c":
        compat.install(PEER, loops=LOOPS)
    return IMPL == "c"


ACTIVE = begin()
