"""Packages for workers: objects and functions sent by value, which say what is missing there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, get_type_hints

from pyspark import cloudpickle

Given = TypeVar("Given")
Made = TypeVar("Made")


class Packaged:
    """An object that Spark sends to workers, packaged so that unpacking says what is missing there."""

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        dumps: Any = cloudpickle.dumps  # for what it has in it that is sent in this way, too
        return unpacker(), (dumps((_restored, (type(self), self.sent()))),)

    def sent(self) -> dict[str, Any]:
        """Return the attributes that workers get."""
        return self.__dict__


def _restored(kind: type[Any], state: dict[str, Any]) -> Any:
    made = object.__new__(kind)
    made.__dict__.update(state)
    return made


def packaged(function: Callable[[Given], Made]) -> Callable[[Given], Made]:
    """A function of one argument as Spark sends it to workers; it has the same name and types."""
    opened = unpacker()
    dumps: Any = cloudpickle.dumps
    octets = dumps((partial, (function,)))

    def run(given: Given) -> Made:
        return opened(octets)(given)  # type: ignore[no-any-return]

    run.__name__ = function.__name__
    run.__annotations__ = dict(zip(("given", "return"), get_type_hints(function).values(), strict=True))
    return run


def unpacker() -> Callable[[bytes], Any]:
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
                "workers run, or send it along in an archive: spark.archives; docs/spark.md says how. "
                "Compiled parts cannot be sent by --py-files."
            ) from error
        return function(*arguments)

    return opened
