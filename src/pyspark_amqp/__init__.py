"""Lets Spark find ``format("amqp")`` by itself: it imports every package whose name begins with ``pyspark_``.

One that fails to import would hide all of them, so nothing here raises.
"""

from typing import Any

__all__ = ["DefaultSource"]

try:
    from amqpcodec.spark.source import AmqpSource

    DefaultSource: Any = AmqpSource
except Exception as _error:  # pyarrow may be missing, or PySpark too old: told when the source is asked for
    from .missing import source_without

    DefaultSource = source_without(_error)
