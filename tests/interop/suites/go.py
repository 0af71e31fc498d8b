"""The suite of amqp091-go, from the proxy of Go's modules."""

from __future__ import annotations

import json
from pathlib import Path

import brokerj

from .running import fetch, run, source

VERSION = "1.16.0"
MANAGED = "^TestConnectionRecovery"  # they have RabbitMQ's management cut connections


def passed(url: str) -> set[str]:
    """Run the tests of amqp091-go; returns those that have passed."""
    compiler = brokerj.program("go")
    folder = source("amqp091-go", lambda: _module(compiler))
    options = ["-tags", "integration", "-skip", MANAGED, "-vet=off", "-count=1", "-json"]
    events = run([compiler, "test", *options, "."], folder, AMQP_URL=url)
    found = set()
    for line in events.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("Action") == "pass" and "Test" in event:
            found.add(event["Test"])
    return found


def _module(compiler: str) -> Path:
    """Fetch the module in Go."""
    wanted = f"github.com/rabbitmq/amqp091-go@v{VERSION}"
    return Path(json.loads(fetch([compiler, "mod", "download", "-json", wanted], brokerj.CACHE))["Dir"])
