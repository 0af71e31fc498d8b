"""The two builds of the codec, side by side in one process."""

from __future__ import annotations

import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import ModuleType

from amqpcodec import _backend
from amqpcodec._protocol.index import DIALECTS

VARIABLE = "AMQPCODEC_TEST_IMPLS"


def left_out() -> str:
    """Why the compiled build is not tested; empty if it is.

    Where some of its modules are compiled, the others must be as well; a tree without any has none to test.
    """
    value = os.environ.get(VARIABLE, "")
    if value not in ("", "py"):
        raise ValueError(f"{VARIABLE} must be py or unset, not {value!r}")
    if value == "py":
        return f"{VARIABLE} leaves the compiled build out"
    package = Path(_backend.__file__).parent
    compiled = any(path.name.endswith(tuple(EXTENSION_SUFFIXES)) for path in package.rglob("*_c.*"))
    return "" if compiled else "nothing is compiled here; make build does that"


def wanted() -> tuple[str, ...]:
    """The builds to test: both, unless the environment or the tree leaves the compiled one out."""
    return ("py",) if left_out() else ("c", "py")


class Implementation:
    """One build. A module that the build lacks is an ImportError, and so a failed test."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.records = self.kernel("records")
        self.tables = self.kernel("tables")
        self.raw_table = self.kernel("rawtable").RawTable

    def kernel(self, module: str) -> ModuleType:
        return _backend.load(f"amqpcodec._kernel.{module}", self.name)

    def capture(self, module: str) -> ModuleType:
        return _backend.load(f"amqpcodec.capture.{module}", self.name)

    def cli(self, module: str) -> ModuleType:
        return _backend.load(f"amqpcodec.cli.{module}", self.name)

    def dialect(self, name: str) -> ModuleType:
        """The generated module of a dialect, by the dialect's name."""
        return _backend.load(f"amqpcodec._generated.{DIALECTS[name]}", self.name)

    def __repr__(self) -> str:
        return f"<build {self.name}>"


def method_class(module: ModuleType, name: str) -> type:
    """The class of a method by its name in the specification, such as ``"basic.publish"``."""
    return next(cls for cls in module.METHODS.values() if cls.spec.name == name)


def properties_class(module: ModuleType, name: str) -> type:
    """The properties class of a content class by the class's name."""
    return next(cls for cls in module.PROPERTIES.values() if cls.spec.name == name)
