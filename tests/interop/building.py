"""Programs in other languages, built in the cache, and servers of this package as processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import brokerj

SOURCES = Path(__file__).resolve().parent / "programs"
PROJECT = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>interop</groupId><artifactId>interop</artifactId><version>0</version>
  <dependencies>{}</dependencies>
</project>
"""
DEPENDENCY = """
    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"""
SILENT = "org.slf4j:slf4j-nop:1.7.36"
ASSEMBLY = Path("/usr/lib/mono/4.5/RabbitMQ.Client.dll")
BUILD_SECONDS = 1800  # on a machine that is busy with other things
RUN_SECONDS = 120


class Program(NamedTuple):
    """A client in another language.

    Attributes:
        name: of the library, and its version.
        command: builds it; returns how to run it.
    """

    name: str
    command: Callable[[], list[str]]


def java(source: str, *artifacts: str) -> list[str]:
    """Return the command of a Java program.

    Args:
        source: its file.
        artifacts: what it needs, each as group, name and version.
    """
    runtime = brokerj.program("java")
    needed = "".join(DEPENDENCY.format(*each.split(":")) for each in (*artifacts, SILENT))
    _, name, version = artifacts[0].split(":")
    libraries = brokerj.libraries(f"{name}-{version}", PROJECT.format(needed))
    return [runtime, "-Xmx256m", "-cp", f"{libraries}{os.sep}*", str(SOURCES / "java" / source)]


def node(source: str) -> list[str]:
    """Return the command of a program for Node."""
    run, npm = brokerj.program("node"), brokerj.program("npm")
    folder = _copied("node")
    _build(folder, npm, "install", "--no-audit", "--no-fund", "--silent")
    return [run, str(folder / source)]


def go() -> list[str]:
    """Return the command of the program in Go."""
    compiler = brokerj.program("go")
    folder = _copied("go")
    _build(folder, compiler, "mod", "tidy")
    _build(folder, compiler, "build", "-o", "session", ".")
    return [str(folder / "session")]


def rust() -> list[str]:
    """Return the command of the program in Rust."""
    compiler = brokerj.program("cargo")
    folder = _copied("lapin")
    _build(folder, compiler, "build", "--quiet")
    return [str(folder / "target" / "debug" / "interop")]


def dotnet() -> list[str]:
    """Return the command of the program for .NET."""
    run, compiler = brokerj.program("mono"), brokerj.program("mcs")
    if not ASSEMBLY.exists():
        raise brokerj.NotInstalledError(
            f"{ASSEMBLY.name} is not installed (Debian: apt-get install libmono-rabbitmq4.0-cil)"
        )
    folder = _copied("mono")
    _build(folder, compiler, f"-r:{ASSEMBLY}", "Session.cs")
    return [run, str(folder / "Session.exe")]


def _copied(name: str) -> Path:
    """Copy the sources to a folder of the cache, which keeps what compilers made before."""
    folder = brokerj.CACHE / "interop" / name
    shutil.copytree(SOURCES / name, folder, dirs_exist_ok=True)
    return folder


def _build(folder: Path, *command: str) -> None:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", timeout=BUILD_SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def said(command: list[str], *arguments: str) -> dict[str, Any]:
    """Run a program; returns what it prints."""
    done = subprocess.run(
        [*command, *arguments], capture_output=True, encoding="utf-8", timeout=RUN_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextmanager
def serving(build: str, *module: str) -> Iterator[int]:
    """Run a module that serves, on a build; gives its port. It must say nothing of an error."""
    with subprocess.Popen(
        [sys.executable, "-m", *module],
        env={**os.environ, "AMQPCODEC_IMPL": build, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()
            yield int(line.rpartition(":")[2])
            process.terminate()
            assert process.communicate(timeout=30)[1] == ""
        finally:
            process.kill()
