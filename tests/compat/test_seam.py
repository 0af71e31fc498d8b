"""Libraries with the seam of `examples/seam.py`: used where amqpcodec is there, turned off by a variable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.compat.seam import SEAM, SEAMS, off, seamed
from support.marks import replaces
from support.tiers import few

TESTS = Path(__file__).parents[1]
PROGRAM = """
import json, sys
from importlib import import_module
if "without" in sys.argv:
    sys.modules["amqpcodec"] = None
library, peer = sys.argv[1:3]
active = import_module(library)._speedups.ACTIVE
sent = import_module("support.compat.smoke").send(peer)
compat = sys.modules.get("amqpcodec.compat")
status = compat.status()[peer] if compat else None
import_module(f"{library}.connection" if library != "pamqp" else "pamqp.frame")
print(json.dumps([active, sent, sorted(status.originals) if status else [], status.fast if status else 0]))
"""
LOOPS = {
    "aiormq": "aiormq.connection.FrameReceiver.get_frame",
    "pika": "pika.connection.Connection._on_data_available",
}


def outcome(library: str, folder: Path, *arguments: str, **variables: str) -> list[Any]:
    path = os.pathsep.join([str(folder), str(TESTS)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, library, SEAMS[library].peer, *arguments],
        env=os.environ | {"PYTHONPATH": path} | variables,
        capture_output=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


@replaces
@pytest.mark.parametrize("library", few(SEAMS, 1, "further libraries"))
def test_a_library_with_the_seam_is_accelerated_and_does_the_same(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    folder = seamed(library, tmp_path)
    active, sent, originals, fast = outcome(library, folder)
    assert active
    assert fast > 0
    assert library not in LOOPS or LOOPS[library] in originals
    for found in (outcome(library, folder, **{off(library): "1"}), outcome(library, folder, "without")):
        assert found == [False, sent, [], 0]


def test_the_seam_is_short() -> None:
    assert len(SEAM.read_text(encoding="utf-8").splitlines()) <= 60
