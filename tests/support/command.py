"""The command `amqpcodec decode`, called in this process, and what `amqpcodec stats` has to show."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amqpcodec.cli import main

if TYPE_CHECKING:
    from amqpcodec.stats import Summary

BUNNY = Path(__file__).parents[2] / "examples" / "real-bunny.pcap"
TXAMQP = BUNNY.with_name("real-txamqp-0-8.pcap")
TROUBLE = BUNNY.with_name("trouble.pcap")


class Run:
    """Calls the command in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object, code: int = 0) -> list[str]:
        assert main(["decode", *map(str, arguments)]) == code
        self.out, self.err = self._capsys.readouterr()
        return self.out.splitlines()

    def rows(self, *arguments: object, code: int = 0) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self(*arguments, "--format", "jsonl", code=code)]


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def summary_of(*paths: Path, top: int = 10) -> Summary:
    """Return the summary of captures that `amqpcodec stats` shows."""
    from amqpcodec import stats  # needs pyarrow, which `decode` does not

    collector = stats.Collector(top=top)
    for path in paths:
        collector.add(path, str(path))
    return collector.summary()
