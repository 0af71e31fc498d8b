"""The suite of amqplib, from the registry of Node."""

from __future__ import annotations

import shutil
from urllib.parse import urlsplit

import brokerj

from interop.building import SOURCES

from .running import fetch, run

VERSION = "2.2.0"  # the packages of later ones have no tests
PROGRAMS = SOURCES / "amqplib-suite"
MILLISECONDS = 60_000  # of a file: on a machine that is busy with other things


def passed(url: str) -> set[str]:
    """Run the tests of amqplib; returns those that have passed."""
    node, npm = brokerj.program("node"), brokerj.program("npm")
    folder = brokerj.CACHE / "interop" / "amqplib-suite"
    shutil.copytree(PROGRAMS, folder, dirs_exist_ok=True)
    fetch([npm, "install", "--no-audit", "--no-fund", "--silent", "--ignore-scripts"], folder)
    tests = sorted(map(str, folder.glob("node_modules/amqplib/test/*.test.js")))
    return set(
        run(
            [node, "--test", f"--test-timeout={MILLISECONDS}", "--test-reporter=./passed.js", *tests],
            folder,
            URL=url,
            AMQP_PORT=str(urlsplit(url).port),
            NODE_OPTIONS="--require ./port.js",
        ).splitlines()
    )
