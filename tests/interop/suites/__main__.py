"""``python -m interop.suites [NAME...]``: suites of clients in other languages, at a RabbitMQ and here.

They come from the registries of their languages. Prints the tests that pass at a RabbitMQ, and not at the
broker for tests. The exit code is 1 if those are more than a tenth of a suite, or if one of them has no
reason in `DIFFERENT`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import brokerj
from support.broker import NoBrokerError, broker

from amqpcodec.testing import running_broker

GO = "1.16.0"
RUST = "4.12.3"
MANAGED = "^TestConnectionRecovery"  # they have RabbitMQ's management cut connections
MOST_FAILED = 0.1
AGAIN = 2  # times that a suite is run for tests that differ: some race a close of the broker
SECONDS = 1800
# Why a test passes at a RabbitMQ and not at the broker for tests.
DIFFERENT: dict[str, str] = {}
CARGO_LINE = re.compile(
    r"^ +Running (?:unittests )?(\S+)|^test (\S+)(?: - should panic)? \.\.\. ok$", re.MULTILINE
)


def go(url: str) -> set[str]:
    """Run the tests of amqp091-go; returns those that have passed."""
    compiler = brokerj.program("go")
    folder = _source("amqp091-go", lambda: _module(compiler))
    options = ["-tags", "integration", "-skip", MANAGED, "-vet=off", "-count=1", "-json"]
    events = _run([compiler, "test", *options, "."], folder, AMQP_URL=url)
    passed = set()
    for line in events.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("Action") == "pass" and "Test" in event:
            passed.add(event["Test"])
    return passed


def rust(url: str) -> set[str]:
    """Run the tests of lapin; returns those that have passed."""
    compiler = brokerj.program("cargo")
    folder = _source("lapin-suite", lambda: _crate(compiler))
    command = [compiler, "test", "--no-fail-fast", "--tests", "--no-default-features", "--features", "tokio"]
    file, passed = "", set()
    printed = _run(command, folder, subprocess.STDOUT, AMQP_ADDR=f"{url}%2F")  # which file runs is an error
    for begun, test in CARGO_LINE.findall(printed):
        file = begun or file
        if test:
            passed.add(f"{file}: {test}")
    return passed


def _source(name: str, fetch: Callable[[], Path]) -> Path:
    """Return a copy of fetched sources, in the cache."""
    folder = brokerj.CACHE / "interop" / name
    if not folder.exists():
        # Without the bits of what cannot be written.
        shutil.copytree(fetch(), folder, copy_function=shutil.copyfile)
        for each in (folder, *folder.rglob("*")):
            each.chmod(0o755 if each.is_dir() else 0o644)
    return folder


def _module(compiler: str) -> Path:
    """Fetch the module in Go."""
    wanted = f"github.com/rabbitmq/amqp091-go@v{GO}"
    found = _run([compiler, "mod", "download", "-json", wanted], brokerj.CACHE)
    return Path(json.loads(found)["Dir"])


def _crate(compiler: str) -> Path:
    """Fetch the crate, as what the session of lapin depends on."""
    manifest = Path(__file__).resolve().parent / "programs" / "lapin" / "Cargo.toml"
    folder = brokerj.CACHE / "interop" / "lapin"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(manifest.parent, folder, dirs_exist_ok=True)
    found = json.loads(_run([compiler, "metadata", "--format-version", "1"], folder))
    (package,) = (each for each in found["packages"] if each["name"] == "lapin")
    return Path(package["manifest_path"]).parent


def _run(command: list[str], folder: Path, errors: int | None = None, **variables: str) -> str:
    """Run a program, whatever its exit code; returns what it prints, with its errors if asked for."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=errors,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )
    return done.stdout


SUITES = {f"amqp091-go {GO}": go, f"lapin {RUST}": rust}


def compared(name: str) -> tuple[str, bool]:
    """A row for the table, and whether too much differs."""
    with broker() as url:
        wanted = SUITES[name](url)
    with running_broker() as own:
        first = apart = wanted - SUITES[name](own.url)
        for _ in range(AGAIN):
            if apart:
                apart = apart - SUITES[name](own.url)
    for test in sorted(apart):
        print(f"{name}: {test}: {DIFFERENT.get(test, 'no reason is known')}", flush=True)
    for test in sorted(first - apart):
        print(f"{name}: {test}: passes now and then", flush=True)
    is_bad = not wanted or len(apart) > MOST_FAILED * len(wanted) or not apart <= DIFFERENT.keys()
    return f"| {name} | {len(wanted)} | {len(wanted - apart)} |", is_bad


def main(names: list[str]) -> int:
    """Run those suites, or all."""
    rows, is_bad = [], False
    for name in names or SUITES:
        try:
            row, differs = compared(name)
        except (NoBrokerError, brokerj.NotInstalledError) as reason:
            row, differs = f"| {name} | left out: {reason} | |", False
        rows.append(row)
        is_bad = is_bad or differs
    print("", "| suite | pass at a RabbitMQ | pass here as well |", "| --- | --- | --- |", *rows, sep="\n")
    return int(is_bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
