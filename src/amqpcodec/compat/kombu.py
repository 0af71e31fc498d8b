"""kombu and Celery without replacing anything: compiled functions for the connections that ask for them.

    from amqpcodec.compat.kombu import transport_options
    kombu.Connection("amqp://", transport_options=transport_options())
    app.conf.broker_transport_options = transport_options()         # Celery

py-amqp's `Connection` takes the functions that read and write its frames as arguments, and kombu passes its
transport options on to it. `install("amqp")` does more: it also serves the arguments of methods.
"""

from __future__ import annotations

from functools import cache, partial

from .. import _backend
from .._typing import Any
from . import known
from ._patches import Options, warn_pure
from ._relied import recognise


def transport_options(*, loops: bool = False, tolerant: bool = False, strict: bool = False) -> dict[str, Any]:
    """Options for connections through kombu's transport ``pyamqp``; they may be pickled.

    Args:
        loops: read ahead from the first delivery on: see `install`.
        tolerant: as for `install`. A message that is left to py-amqp's own writer, such as one with a text of
            a subclass, is refused by an `amqpcodec.EncodeError` if it has a table that could not be read.
            `install` replaces that writer, too.
        strict: as for `install`.

    Returns:
        Options to add to one's own. What is not known of py-amqp is not in them, and where amqpcodec is not
        compiled there are none; a warning says so.

    Raises:
        ModuleNotFoundError: ``strict``, and py-amqp is not installed.
        UnknownReleaseError: ``strict``, and not all that would be replaced is known.
    """
    if _backend.IMPL != "c":
        warn_pure("amqp")
        return {}
    rules = known("amqp", loops, strict).rules
    makers = {"frame_handler": frame_handler, "frame_writer": frame_writer}
    return {
        name: partial(maker, loops, tolerant)
        for name, maker in makers.items()
        if f"amqp.method_framing.{name}" in rules
    }


def frame_handler(loops: bool, tolerant: bool, connection: Any, callback: Any) -> Any:
    """Return the function that py-amqp calls with frames coming in."""
    return _framing(loops, tolerant).frame_handler(connection, callback)


def frame_writer(loops: bool, tolerant: bool, connection: Any, transport: Any) -> Any:
    """Return the function that py-amqp calls to write frames."""
    return _framing(loops, tolerant).frame_writer(connection, transport)


@cache
def _framing(loops: bool, tolerant: bool) -> Any:
    from ._amqp import fast

    return fast(Options(recognise("amqp", loops=loops), loops, tolerant)).framing


__all__ = ["transport_options"]
