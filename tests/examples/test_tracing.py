"""A trace goes from a publisher to a consumer in the headers of messages."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest
from support.examples import EXAMPLES, ROOT, example, serving

from amqpcodec import rabbitmq as amqp

TRACE = "00-5eed0000000000000000000000000001-c0de000000000001-01"
RUN = "import runpy, sys; {}del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
WITHOUT = "sys.modules['opentelemetry'] = None; "


@pytest.mark.parametrize("library", ["OpenTelemetry", "none"])
def test_a_consumer_goes_on_with_the_trace_of_the_publisher(library: str, impl: Any) -> None:
    if library == "OpenTelemetry" and find_spec("opentelemetry") is None:
        pytest.skip("opentelemetry-api is not installed")
    run = RUN.format(WITHOUT if library == "none" else "")
    with serving(impl.name) as (port, _):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", run, str(EXAMPLES / "tracing.py"), f"amqp://127.0.0.1:{port}"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "AMQPCODEC_IMPL": impl.name},
            capture_output=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip
    shown = f"{{'traceparent': '{TRACE}'}}"
    assert (done.stderr, done.stdout) == ("", f"published in {shown}\nconsumed in {shown}\n")


def test_the_properties_of_a_program_are_not_changed() -> None:
    tracing = example("tracing")
    own = amqp.BasicProperties(message_id="m-1", headers={"attempt": 1})
    with tracing.continued({"traceparent": TRACE}):
        made = tracing.before_publish(amqp.Basic.Publish(), own)
    assert own == amqp.BasicProperties(message_id="m-1", headers={"attempt": 1})
    headers = {"attempt": 1, "traceparent": TRACE}
    assert made == amqp.BasicProperties(message_id="m-1", headers=headers)
    assert tracing.before_publish(amqp.Basic.Publish(), None).headers == {}
