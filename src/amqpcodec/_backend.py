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
        _warn_of_what_failed()
        return "py"
    return "c"


def _warn_of_what_failed() -> None:
    """Warn where the installation wanted to compile and could not: then setup.py has left the reason."""
    try:
        with open(f"{os.path.dirname(__file__)}/not-compiled.txt", encoding="utf-8") as file:
            reason = file.read()
    except OSError:
        return
    try:  # noqa: SIM105, contextlib takes a twentieth of an import
        warnings.warn(
            "amqpcodec runs its pure build, which is many times slower, since the installation could not "
            f"compile it: {reason}. Where there are a C compiler and the headers of Python (Debian: "
            "build-essential python3-dev), `pip install --force-reinstall --no-cache-dir` compiles it. "
            f"{_VARIABLE}=py in the environment says that the pure build is wanted, and silences this.",
            RuntimeWarning,
            stacklevel=5,
        )
    except RuntimeWarning:  # a program that makes warnings errors still starts
        pass


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
