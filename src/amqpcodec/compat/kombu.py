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
from ._patches import Options, warn_pure
from ._versions import release


def transport_options(*, loops: bool = False, hardened: bool = False, force: bool = False) -> dict[str, Any]:
    """Options for connections through kombu's transport ``pyamqp``; they may be pickled.

    Args:
        loops: replace the read loop too, which then reads ahead: see `install`.
        hardened: as for `install`.
        force: as for `install`.

    Returns:
        Options to add to one's own; none where amqpcodec is not compiled, and a warning says so.

    Raises:
        ModuleNotFoundError: py-amqp is not installed.
        UnknownReleaseError: its release is not known.
    """
    if _backend.IMPL != "c":
        warn_pure("amqp")
        return {}
    found = release("amqp", loops=loops, force=force)
    options = Options(found.rules, found.version, loops, hardened)
    return {
        "frame_handler": partial(frame_handler, options),
        "frame_writer": partial(frame_writer, options),
    }


def frame_handler(options: Options, connection: Any, callback: Any) -> Any:
    """Return the function that py-amqp calls with frames coming in."""
    return _framing(options).frame_handler(connection, callback)


def frame_writer(options: Options, connection: Any, transport: Any) -> Any:
    """Return the function that py-amqp calls to write frames."""
    return _framing(options).frame_writer(connection, transport)


@cache
def _framing(options: Options) -> Any:
    from ._amqp import fast

    return fast(options).framing


__all__ = ["transport_options"]
