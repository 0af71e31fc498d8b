"""Filters that Spark pushes down (from PySpark 4.1 on), as far as they mean the same on Arrow's columns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as spark

from .planning import Recording
from .source import AmqpReader

_ORDERED: dict[type, Callable[[Any, Any], Any]] = {
    spark.EqualTo: operator.eq,
    spark.GreaterThan: operator.gt,
    spark.GreaterThanOrEqual: operator.ge,
    spark.LessThan: operator.lt,
    spark.LessThanOrEqual: operator.le,
}


class FilteringReader(AmqpReader):
    """A reader that is handed filters; Spark fails a query for which they are off and this is defined."""

    _files: frozenset[str] | None = None  # the only ones that are asked for

    def pushFilters(self, filters: list[spark.Filter]) -> Iterable[spark.Filter]:  # noqa: N802
        """Take those filters that Arrow evaluates just as Spark does; the others are given back."""
        return list(self._left(filters))

    def recordings(self) -> list[Recording]:
        """Select recordings with a file that may be asked for: a row of one file can come out in the next."""
        found, files = super().recordings(), self._files
        if files is None:
            return found
        return [
            recording
            for recording in found
            if any(each.path in files for part in recording for each in part.ranges)
        ]

    def _left(self, filters: list[spark.Filter]) -> Iterator[spark.Filter]:
        for given in filters:
            found = expression(given, self.schema)
            if found is None:
                yield given
                continue
            self.keep = found if self.keep is None else self.keep & found
            if isinstance(given, (spark.EqualTo, spark.In)) and given.attribute == ("file",):
                files = frozenset(given.value if isinstance(given, spark.In) else [given.value])
                self._files = files if self._files is None else self._files & files


def expression(given: Any, schema: pa.Schema) -> pc.Expression | None:
    """A filter of PySpark on batches of a schema; None if it is left to Spark.

    Comparisons with null keep no row in either, and text is compared by its octets in both.
    """
    if isinstance(given, spark.Not):
        inside = expression(given.child, schema)
        return None if inside is None else ~inside
    path = getattr(given, "attribute", ())
    kind = _kind(path, schema)
    if kind is None or pa.types.is_nested(kind):
        return None
    column = pc.field(*path)
    if isinstance(given, spark.IsNull):
        return column.is_null()
    if isinstance(given, spark.IsNotNull):
        return column.is_valid()
    try:
        if isinstance(given, spark.In):
            # Among nulls, SQL finds nothing and says nothing: left to Spark.
            values = None if None in given.value else _values(given.value, kind)
            # Null is in nothing, and not in nothing either.
            return None if values is None else pc.if_else(column.is_valid(), column.isin(values), None)
        compare = _ORDERED.get(type(given))
        values = None if compare is None else _values([given.value], kind)
        return None if compare is None or values is None else compare(column, values[0])
    except (pa.ArrowException, TypeError, OverflowError):
        return None


def _values(values: Iterable[Any], kind: pa.DataType) -> pa.Array | None:
    """Values as those of a column; None if one would become another, as 1.5 among whole numbers."""
    made = pa.array(values, kind)
    return made if made.to_pylist() == list(values) else None


def _kind(path: tuple[str, ...], schema: pa.Schema) -> pa.DataType | None:
    """The type of a column, or of a field in a struct."""
    inside: Any = schema
    for name in path:
        index = inside.get_field_index(name) if isinstance(inside, (pa.Schema, pa.StructType)) else -1
        if index < 0:
            return None
        found = inside.field(index)
        inside = found.type
    return inside if path else None
