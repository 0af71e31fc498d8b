"""The stand-in for the data source where it cannot be imported."""

from __future__ import annotations

from typing import Any


def source_without(error: Exception) -> Any:
    """A data source ``amqp`` that says, when it is used, why it does not work.

    Args:
        error: what importing it raised.

    Returns:
        None where there is no PySpark with data sources.
    """
    try:
        from pyspark.sql.datasource import DataSource
    except Exception:  # whatever is wrong there, other sources must not suffer
        return None
    reason = f"amqpcodec.spark cannot be imported: {error}"

    class MissingSource(DataSource):
        """Raises the reason."""

        @classmethod
        def name(cls) -> str:
            return "amqp"

        def schema(self) -> Any:
            raise ImportError(reason)

        def reader(self, schema: Any) -> Any:
            raise ImportError(reason)

    return MissingSource
