"""The client on a blocking socket publishes a message, and ends with the connection."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from support.examples import EXAMPLES, ROOT, serving


def test_a_message_is_published_and_confirmed(impl: Any) -> None:
    program = [sys.executable, "-W", "error", str(EXAMPLES / "blocking.py")]
    with serving(impl.name) as (port, _):
        done = subprocess.run(
            [*program, f"amqp://127.0.0.1:{port}/", "text"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "AMQPCODEC_IMPL": impl.name},
            capture_output=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
    assert (done.stderr, done.stdout) == ("", "closed: 200 \n")
