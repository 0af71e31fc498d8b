"""What is sent to workers says what is missing there in our own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def opener() -> Callable[[bytes], Any]:
    """A function that makes what was sent of its octets.

    It is a function inside another, so that PySpark sends its code, not the name of this module: that has to
    be understood where the package is missing.

    The octets are a pickle of a function and its arguments.
    """

    def opened(octets: bytes) -> Any:
        import pickle

        try:
            function, arguments = pickle.loads(octets)
        except ImportError as error:
            raise ImportError(
                f"a worker of Spark cannot import what it needs: {error}. Install amqpcodec[spark] where the "
                "workers run, or send it along in an archive: spark.archives; docs/spark.md tells how. "
                "Compiled parts cannot be sent by --py-files."
            ) from error
        return function(*arguments)

    return opened
