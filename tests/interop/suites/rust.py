"""The suite of lapin, from the registry of Rust."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import brokerj

from interop.building import SOURCES

from .running import fetch, run, source

VERSION = "4.12.3"
LINE = re.compile(r"^ +Running (?:unittests )?(\S+)|^test (\S+)(?: - should panic)? \.\.\. ok$", re.MULTILINE)


def passed(url: str) -> set[str]:
    """Run the tests of lapin; returns those that have passed."""
    compiler = brokerj.program("cargo")
    folder = source("lapin-suite", lambda: _crate(compiler))
    command = [compiler, "test", "--no-fail-fast", "--tests", "--no-default-features", "--features", "tokio"]
    file, found = "", set()
    printed = run(command, folder, subprocess.STDOUT, AMQP_ADDR=f"{url}%2F")  # which file runs is an error
    for begun, test in LINE.findall(printed):
        file = begun or file
        if test:
            found.add(f"{file}: {test}")
    return found


def _crate(compiler: str) -> Path:
    """Fetch the crate, as what the session of lapin depends on."""
    folder = brokerj.CACHE / "interop" / "lapin"
    shutil.copytree(SOURCES / "lapin", folder, dirs_exist_ok=True)
    packages = json.loads(fetch([compiler, "metadata", "--format-version", "1"], folder))["packages"]
    (package,) = (each for each in packages if each["name"] == "lapin")
    return Path(package["manifest_path"]).parent
