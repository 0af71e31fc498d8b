"""Scripts that are run in a process of their own, since a process has one session of Spark.

Each takes its arguments as JSON, and prints what it found as JSON in its last line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

SOURCES = Path(__file__).parents[2] / "src"
_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # half the CPU time: no JVM here lives long enough for more
)
SETTINGS = {
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.executor.extraJavaOptions": _JAVA,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.executorEnv.PYTHONPATH": str(SOURCES),
}
_BEGIN = """
import json, os, sys
given = json.loads(sys.argv[1])
from amqpcodec.spark.java import local_java
from pyspark.sql import SparkSession
def session(**settings):
    builder = SparkSession.builder
    for name, value in (given["settings"] | settings).items():
        builder = builder.config(name, value)
    return builder
def report(**found):
    print(json.dumps(found), flush=True)
"""


def run(script: str, settings: dict[str, str], *, seconds: float = 240, **given: Any) -> dict[str, Any]:
    """Run a script with `given`, `session` and `report`, under a Java.

    Args:
        script: Python.
        settings: of Spark.
        seconds: how long it may take.
        given: what the script finds in `given`.
    """
    indented = "\n".join(f"    {line}" for line in script.strip().splitlines())
    environment = os.environ | {"PYTHONPATH": str(SOURCES), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{_BEGIN}with local_java():\n{indented}\n",
            json.dumps(given | {"settings": settings}),
        ],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def in_spark(session: Any, paths: Sequence[Path]) -> pa.Table:
    """Return the rows of a session over the files of one recording, as Spark has them."""
    found = [batch for path in paths for batch in session.read(str(path))]
    table = pa.Table.from_batches([*found, *session.finish()], session.schema)
    place = table.schema.get_field_index("file") + 1
    if not place:  # some columns were asked for
        return table
    return table.add_column(place, "recording", pa.array([str(paths[0])] * table.num_rows, pa.string()))
