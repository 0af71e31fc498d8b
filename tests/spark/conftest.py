"""Real Spark sessions, each started once; skipped, with the reason, where there is no Java."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pyspark = pytest.importorskip("pyspark")

from amqpcodec.spark.java import NoJavaError, local_java  # noqa: E402

SOURCES = Path(__file__).parents[2] / "src"
sys.path.append(str(SOURCES.parent / "tests" / "capture"))  # captures are made there
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.executorEnv.PYTHONPATH": str(SOURCES),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a session is for `make test-spark`, but for a few tests that are marked as quick."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and item.get_closest_marker("quick") is None:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def java() -> Iterator[None]:
    """A Java and the sources, for everything that Spark starts."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(SOURCES)  # workers of local[2] inherit it
    try:
        with local_java():
            yield
    except NoJavaError as error:
        pytest.skip(str(error))
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="session")
def spark(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session of two threads in this process's own JVM."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("amqpcodec tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
