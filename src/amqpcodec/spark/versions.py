"""Abilities that not every version of PySpark has."""

from __future__ import annotations

from importlib import import_module

import pyspark

# What a user asks for: the module of PySpark, what it has there if it can do that, and since which version.
_NEEDED = {
    "to_amqp": ("pyspark.sql.functions", "arrow_udf", "4.1"),
    "maxFilesPerTrigger": ("pyspark.sql.streaming.datasource", "ReadMaxFiles", "4.2"),
}


def lack(feature: str) -> str | None:
    """Why this PySpark cannot do something, for people to read; None if it can."""
    module, name, since = _NEEDED[feature]
    try:
        there = hasattr(import_module(module), name)
    except ModuleNotFoundError:
        there = False
    return None if there else f"{feature} needs PySpark {since} or later, and this is {pyspark.__version__}"


def need(feature: str) -> None:
    """Make sure that this PySpark can do something.

    Raises:
        NotImplementedError: it cannot.
    """
    message = lack(feature)
    if message is not None:
        raise NotImplementedError(message)
