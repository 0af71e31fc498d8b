"""What an older PySpark cannot do is refused by name, with the version that can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyspark

from amqpcodec.spark import table_schema, to_amqp
from amqpcodec.spark.source import AmqpSource
from amqpcodec.spark.versions import lack


def read(**options: str) -> Any:
    return AmqpSource({"path": "captures", **options}).reader(table_schema())


def stream(**options: str) -> Any:
    return AmqpSource({"path": "captures", **options}).streamReader(table_schema())


@pytest.mark.parametrize(
    ("feature", "version", "attribute", "use"),
    [
        ("to_amqp", "4.1", "pyspark.sql.functions.arrow_udf", lambda: to_amqp("message")),
        (
            "maxFilesPerTrigger",
            "4.2",
            "pyspark.sql.streaming.datasource.ReadMaxFiles",
            lambda: stream(maxFilesPerTrigger="1"),
        ),
    ],
)
def test_what_is_not_there_is_reported_with_the_version_that_has_it(
    monkeypatch: pytest.MonkeyPatch, feature: str, version: str, attribute: str, use: Callable[[], Any]
) -> None:
    if lack(feature) is None:
        monkeypatch.delattr(attribute)
    message = f"{feature} needs PySpark {version} or later, and this is {pyspark.__version__}"
    with pytest.raises(NotImplementedError) as error:
        use()
    assert str(error.value) == message


def test_the_rest_is_there_everywhere() -> None:
    assert read()
    assert stream()
