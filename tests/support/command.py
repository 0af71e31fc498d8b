"""The command `amqpcodec decode`, called in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amqpcodec.cli import main

BUNNY = Path(__file__).parents[2] / "examples" / "real-bunny.pcap"
TXAMQP = BUNNY.with_name("real-txamqp-0-8.pcap")


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
