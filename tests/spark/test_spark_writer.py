"""What the writer refuses before Spark has begun a task, without a session."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from amqpcodec.spark.options import write_options
from amqpcodec.spark.writer import AmqpWriter

SCHEMA = StructType([StructField("routing_key", StringType()), StructField("octets", BinaryType())])


@pytest.mark.parametrize("key", ["nothing", "octets"])
def test_a_key_that_is_no_column_of_the_messages_is_refused(key: str, tmp_path: Path) -> None:
    options = write_options({"path": str(tmp_path / "out"), "output": "rows", "keys": f"routing_key, {key}"})
    with pytest.raises(ValueError, match=rf"^'{key}' cannot be a key; the columns are routing_key, octets$"):
        AmqpWriter(options, SCHEMA, overwrite=False)
    assert not (tmp_path / "out").exists()
