"""Chooses the build: the only place that knows there are two.

`AMQPCODEC_IMPL=c` or `py` in the environment names one, and then its absence is an error; unset, the
compiled build serves where it can be imported and the pure one elsewhere.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from types import ModuleType

from ._typing import Any

_VARIABLE = "AMQPCODEC_IMPL"


def _choose() -> str:
    wanted = os.environ.get(_VARIABLE, "")
    if wanted not in ("", "c", "py"):
        raise ImportError(f"{_VARIABLE} must be c or py, not {wanted!r}")
    if wanted == "py":
        return "py"
    try:
        import_module("amqpcodec._kernel.stream_c")
    except ImportError as error:
        if wanted == "c":
            raise ImportError(f"{_VARIABLE}=c, but the compiled build cannot be imported: {error}") from error
        return "py"
    return "c"


IMPL = _choose()
"""The build in use: ``"c"`` is the compiled one, ``"py"`` the pure one."""


def load(name: str, impl: str = IMPL) -> ModuleType:
    """One module of a build.

    Args:
        name: import path without the ending that distinguishes the builds.
        impl: ``"c"`` or ``"py"``.

    Raises:
        ImportError: the build does not have it.
    """
    return import_module(f"{name}_{impl}")


def require_same(name: str, compiled: str, facts: str) -> None:
    """Refuse a dialect's module that was compiled before its specification changed.

    Args:
        name: the module's import path.
        compiled: digest of the specification in the module.
        facts: the same in the table of facts, which is never compiled.

    Raises:
        ImportError: they differ.
    """
    if compiled != facts:
        reason = "its specification has changed since it was compiled"
        raise ImportError(f"{name}: {reason}; compile it again, by `make build` in a checkout", name=name)


def export(name: str, namespace: dict[str, Any]) -> None:
    """Put the public names of a module of the build in use into a namespace.

    Args:
        name: import path without the ending that distinguishes the builds.
        namespace: the `globals()` to fill.
    """
    try:
        module = load(name)
    except ModuleNotFoundError:
        # The package of a foreign dialect may not have been compiled. Its pure text serves as well, but
        # its frames and messages are of the pure build's classes, not of those `amqpcodec` exports.
        message = f"{name} is not compiled: using its pure build beside the compiled amqpcodec"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
        module = load(name, "py")
    for public in module.__all__:
        namespace[public] = getattr(module, public)
    namespace["__all__"] = list(module.__all__)
