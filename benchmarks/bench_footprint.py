"""Measures what the package costs besides time: import and memory, each in a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import amqpcodec

HERE = Path(__file__).parent
IMPORTS = {
    "amqpcodec": ("amqpcodec.rabbitmq", {"AMQPCODEC_IMPL": "c"}),
    "amqpcodec pure": ("amqpcodec.rabbitmq", {"AMQPCODEC_IMPL": "py"}),
    "py-amqp": ("amqp.serialization", {}),
    "pika": ("pika.frame", {}),
    "pamqp": ("pamqp.frame", {}),
}
IMPORT = """
import json, sys
from time import perf_counter
begin = perf_counter()
import {module}
took = perf_counter() - begin
generated = [name for name in sys.modules if name.startswith("amqpcodec._generated.")]
print(json.dumps([took * 1e3, generated]))
"""


def run_python(arguments: list[str], environment: dict[str, str]) -> Any:
    """What a fresh interpreter prints, read as JSON; skips where it fails for want of a module."""
    path = os.pathsep.join([str(Path(amqpcodec.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment, "PYTHONPATH": path},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if "ImportError" in done.stderr or "ModuleNotFoundError" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", IMPORTS)
def test_import(benchmark: Any, name: str) -> None:
    """Milliseconds of one import statement, beyond a running interpreter."""
    module, environment = IMPORTS[name]
    taken: list[float] = []

    def start() -> None:
        milliseconds, generated = run_python(["-c", IMPORT.format(module=module)], environment)
        others = [
            found
            for found in generated
            if not found.rsplit(".", 1)[1].startswith(("rabbitmq", "reply", "codes", "index"))
        ]
        assert not others, f"{module} loads other dialects: {others}"
        taken.append(milliseconds)

    benchmark.group = "import"
    benchmark.pedantic(start, rounds=9, warmup_rounds=1)
    benchmark.extra_info.update(peer=name, item="import", operations=1, milliseconds=min(taken[1:]))


@pytest.mark.parametrize(("name", "impl"), [("amqpcodec", "c"), ("amqpcodec pure", "py")])
def test_memory(benchmark: Any, name: str, impl: str) -> None:
    """Peak memory of decoding a long stream of deliveries in chunks of 65536 octets."""
    count = 1_000_000 if impl == "c" else 50_000
    figures: list[dict[str, int]] = []

    def decode() -> None:
        figures.append(run_python([str(HERE / "memory.py"), impl, str(count)], {}))

    benchmark.group = "memory"
    benchmark.pedantic(decode, rounds=1)
    item = "peak memory of a stream of deliveries"
    benchmark.extra_info.update(peer=name, item=item, operations=count, **figures[0])
