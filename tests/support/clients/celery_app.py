"""An application of Celery whose one task writes down what it was called with; as a command it calls it.

``python -m support.clients.celery_app COUNT`` calls the task so often. Broker, queue and folder are those of
the environment: ``AMQP_URL``, ``AMQPCODEC_QUEUE``, ``AMQPCODEC_FOLDER``.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import worker_process_shutdown, worker_shutdown

from .__main__ import status
from .samples import Clock, task

app = Celery("amqpcodec_tests", broker=os.environ["AMQP_URL"])
app.conf.update(
    task_default_queue=os.environ["AMQPCODEC_QUEUE"],
    task_ignore_result=True,
    task_default_delivery_mode=1,
    worker_prefetch_multiplier=100,
    broker_connection_retry_on_startup=True,
)


@cache
def record() -> int:
    """A file of this process, to append to."""
    path = Path(os.environ["AMQPCODEC_FOLDER"], f"called-{os.getpid()}")
    return os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)


@app.task(bind=True, name="called")
def called(self: Any, number: int, text: str) -> None:
    """Write down the arguments and the headers of the call."""
    line = json.dumps([number, text, self.request.headers])
    os.write(record(), line.encode() + b"\n")


@worker_shutdown.connect
@worker_process_shutdown.connect
def stopped(**_: Any) -> None:
    """Leave behind what was replaced in this process."""
    Path(os.environ["AMQPCODEC_FOLDER"], f"status-{os.getpid()}").write_text(
        json.dumps(status()), encoding="utf-8"
    )


def main(count: int) -> None:
    """Call the task so often."""
    clock = Clock()
    with clock:
        for number in range(count):
            _, text, headers = task(number)
            called.apply_async((number, text), headers=headers)
    print(json.dumps({"microseconds": clock.seconds * 1e6 / count, "status": status()}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
