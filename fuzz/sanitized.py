"""Builds of the extension modules with sanitizers, each in a folder of its own under build/.

    fuzz    clang: AddressSanitizer, UndefinedBehaviorSanitizer, coverage for libFuzzer
    asan    gcc: AddressSanitizer, UndefinedBehaviorSanitizer, for the test suite

The build in place is never touched. `environment` is what Python needs to load such a build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLANGS = ("clang", *(f"clang-{version}" for version in range(21, 13, -1)))


class MissingToolError(Exception):
    """Something that has to be installed first; the message says what."""


@dataclass(frozen=True)
class Kind:
    """How one of the builds is compiled."""

    name: str
    compilers: tuple[str, ...]
    sanitize: str
    package: str


KINDS = {
    "fuzz": Kind(
        "fuzz",
        CLANGS,
        "fuzzer-no-link,address,undefined",
        "clang with its runtime (Debian: clang-14 libclang-rt-14-dev)",
    ),
    "asan": Kind("asan", ("gcc",), "address,undefined", "gcc"),
}


def compiler(kind: Kind) -> str:
    """The compiler of a kind of build; CLANG in the environment names another clang."""
    named = os.environ.get("CLANG") if kind.name == "fuzz" else None
    for candidate in (named, *kind.compilers):
        if candidate and (path := shutil.which(candidate)):
            return path
    raise MissingToolError(f"no {kind.compilers[0]}: install {kind.package}")


def build(name: str) -> Path:
    """Compile what has changed; the folder to put on the import path.

    Raises:
        MissingToolError: no compiler for it.
        subprocess.CalledProcessError: it does not compile.
    """
    kind = KINDS[name]
    cc = compiler(kind)
    base = ROOT / "build" / name
    flags = f"-fsanitize={kind.sanitize} -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
    environment = {
        **os.environ,
        "AMQPCODEC_BUILD": "require",
        "CC": cc,
        "LDSHARED": f"{cc} -shared",
        "CFLAGS": flags,
        "LDFLAGS": f"-fsanitize={kind.sanitize}",
    }
    command = [sys.executable, "setup.py", "-q", "build", "--build-base", str(base)]
    command += ["--build-lib", str(base / "lib")]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return base / "lib"


def environment(name: str, lib: Path) -> dict[str, str]:
    """The variables under which Python loads a build: its folder, and the sanitizer's runtime before all."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (lib, ROOT / "tests", ROOT / "fuzz"))),
        "PYTHONMALLOC": "malloc",  # so that every object is an allocation of its own
        "LD_PRELOAD": ":".join(runtimes(name)),
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }


def runtimes(name: str) -> list[str]:
    """The libraries to load before Python, which itself is not instrumented."""
    if name == "asan":
        cc = compiler(KINDS[name])
        return [_printed(cc, f"-print-file-name={library}") for library in ("libasan.so", "libubsan.so")]
    try:
        folder = _printed(sys.executable, "-c", "import atheris; print(atheris.path())")
    except subprocess.CalledProcessError:
        raise MissingToolError("no atheris: pip install '.[fuzz]'") from None
    return [str(Path(folder) / "asan_with_fuzzer.so")]


def _printed(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    return done.stdout.strip()
