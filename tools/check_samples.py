#!/usr/bin/env python3
"""Checks a user's programs with mypy and pyright, both strict, against the package as it is installed.

    python tools/check_samples.py

The programs are tests/api/sample_*.py, and those that are made here: one uses every name of the reply errors,
and one for each dialect every name, every method and each of its fields. A wheel of the pure build is laid
out in an environment under build/types; so `py.typed` and the wheel's files are what counts.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import amqpcodec
from amqpcodec import reply_errors

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "types"
# What reading a field gives, by its wire type.
TYPES = {
    "bit": "bool", "octet": "int", "short": "int", "long": "int", "longlong": "int", "shortstr": "str",
    "longstr": "bytes", "timestamp": "datetime | int", "table": "Mapping[str, Any]",
    "content": "InlineContent | ReferenceContent",
}  # fmt: skip


def sample_of_names(module: ModuleType) -> str:
    """A program that uses every name of a module."""
    name = module.__name__.rpartition(".")[2]
    lines = (f"    module.{each}," for each in module.__all__)
    return "\n".join((f"from amqpcodec import {name} as module\n", "names: list[object] = [", *lines, "]\n"))


def dialect_sample(module: ModuleType) -> str:
    """A program that uses every name of a dialect."""
    return "\n".join(_lines(module))


def _lines(module: ModuleType) -> Iterator[str]:
    name = module.__name__.rpartition(".")[2]
    yield '"""Every name of a dialect, and the type of every field."""\n'
    yield "from __future__ import annotations\n"
    yield "from collections.abc import Mapping"
    yield "from datetime import datetime"
    yield "from typing import Any, assert_type\n"
    yield "from amqpcodec import InlineContent, Method, Properties, ReferenceContent"
    yield f"from amqpcodec import {name} as amqp\n"
    yield "types: tuple[Mapping[str, Any] | datetime | InlineContent | ReferenceContent, ...] = ()"
    yield "methods: list[Method] = []"
    yield "properties: list[Properties] = []"
    yield "names: list[object] = ["
    yield from (f"    amqp.{each}," for each in module.__all__)
    yield "]"
    for classes, into, absent in (
        (module.METHODS, "methods", ""),
        (module.PROPERTIES, "properties", " | None"),
    ):
        for cls in classes.values():
            value = f"amqp.{cls.__name__}()"
            yield f"{into}.append({value})"
            for field in cls.spec.fields:
                bit = field.type == "bit" or not absent
                kind = TYPES[field.type] + ("" if bit else absent)
                yield f"assert_type({value}.{field.attribute}, {kind})"


def lay_out() -> Path:
    """Build the wheel, and lay it out in an environment beside the programs; its interpreter."""
    quiet = {"env": os.environ | {"AMQPCODEC_BUILD": "skip"}, "capture_output": True, "check": True}
    for old in ("wheel", "programs", "environment"):
        shutil.rmtree(WORK / old, ignore_errors=True)
    command = (sys.executable, "setup.py", "-q", "egg_info", "-e", WORK, "build", "-b", WORK / "build")
    subprocess.run([*command, "bdist_wheel", "-d", WORK / "wheel"], cwd=ROOT, **quiet)  # type: ignore[call-overload]
    venv.create(WORK / "environment")
    python = WORK / "environment" / "bin" / "python"
    paths = {"base": str(WORK / "environment"), "platbase": str(WORK / "environment")}
    site = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    [wheel] = (WORK / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    # The libraries of this environment, but not what it has installed from folders.
    libraries = (path for path in sys.path if path.endswith("-packages"))
    (site / "libraries.pth").write_text("\n".join(libraries), encoding="utf-8")
    (WORK / "programs").mkdir()
    for sample in (ROOT / "tests" / "api").glob("sample_*.py"):
        shutil.copy(sample, WORK / "programs")
    for dialect in amqpcodec.DIALECTS.values():
        module = import_module(f"amqpcodec.{dialect}")
        (WORK / "programs" / f"sample_{dialect}.py").write_text(dialect_sample(module), encoding="utf-8")
    (WORK / "programs" / "sample_reply_errors.py").write_text(sample_of_names(reply_errors), encoding="utf-8")
    return python


def main() -> int:
    """Run both checkers on all programs."""
    python, programs = lay_out(), WORK / "programs"
    settings = {"include": ["."], "typeCheckingMode": "strict", "reportMissingTypeStubs": False}
    settings |= {
        "reportUnknownMemberType": False,
        "reportUnknownVariableType": False,
    }  # of pyarrow, which has none
    settings |= {"reportUnknownArgumentType": False, "reportUnknownParameterType": False}
    (programs / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    mypy = (
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir",
        WORK / "cache",
        "--python-executable",
        python,
        ".",
    )
    pyright = ("pyright", "--pythonpath", python, "--project", ".")
    failed = 0
    for checker in (mypy, pyright):
        done = subprocess.run([sys.executable, "-m", *checker], cwd=programs, check=False)
        failed |= done.returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
