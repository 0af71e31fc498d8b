"""Real Spark sessions, each started once; skipped, with the reason, where there is no Java."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyspark
from support.spark_jobs import SETTINGS, SOURCES

from amqpcodec import IMPL
from amqpcodec.spark.java import NoJavaError, local_java
from amqpcodec.spark.versions import lack


def pytest_configure(config: pytest.Config) -> None:
    """PySpark before 4.2 leaves it to Python to close the sockets that it fetches results by."""
    if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 2):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what needs a session to `make test-spark`, but for a few tests that `make test-all` runs.

    What an older PySpark cannot do is skipped there.
    """
    for item in items:
        if "java" in getattr(item, "fixturenames", ()) and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.spark)
        for needed in item.iter_markers("needs"):
            if message := lack(*needed.args):
                item.add_marker(pytest.mark.skip(reason=message))


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """The data source refuses the pure build, unless it is asked for by option."""
    if IMPL != "c":
        pytest.skip("the data source reads with the compiled build")


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
