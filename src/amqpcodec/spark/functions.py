"""Column functions: frames to a struct, and messages to frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Literal, Unpack

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import BinaryType, DataType

from .. import arrow
from .._options import select, takes
from ..options import DIALECT, ColumnOptions, EncodingOptions, SparkDecodingOptions, SparkMessageOptions
from .packaging import packaged
from .reading import check_build
from .schemas import data_type
from .versions import need

_Arrays = Iterator[pa.Array]


@takes(SparkDecodingOptions, dialect=DIALECT)
def from_amqp(col: Column | str, table: str = "frames", **options: Unpack[SparkDecodingOptions]) -> Column:
    """Frames as a struct of the columns of a table.

    Each value is decoded by itself. It should hold one row of the table: one frame, one method, or the frames
    of one message. For any other value, `_error` in the struct says why; docs/columns.md has its codes.

    Args:
        col: a binary column.
        table: ``"frames"``, ``"methods"`` or ``"messages"``.
        options: those of `SparkDecodingOptions`. Without columns, those about files and packets are left out,
            too; fewer columns are faster. There is no mode ``"drop"``.

    Returns:
        A struct, null where the value is null. It is declared non-deterministic, so that Spark evaluates it
        once however many of its fields are used.

    Raises:
        TypeError, ValueError: no such table or column; an option that cannot be.
    """
    impl, chosen = options["impl"], select(ColumnOptions, options)
    fields = list(arrow.ValueDecoder(table, **chosen).schema)
    chosen["_impl"] = impl

    def decode(arrays: _Arrays) -> _Arrays:
        check_build(impl)
        decoder = arrow.ValueDecoder(table, **chosen)
        for values in arrays:
            batch = decoder.decode(values)
            yield pa.StructArray.from_arrays(batch.columns, fields=fields, mask=values.is_null())

    arrow_udf: Any = getattr(sql, "arrow_udf", None)
    kind = data_type(pa.struct(fields))
    made: Column = (arrow_udf or _through_pandas)(packaged(decode), kind).asNondeterministic()(col)
    if arrow_udf is not None:
        return made
    # Pandas has no null in place of several columns.
    return sql.when((sql.col(col) if isinstance(col, str) else col).isNotNull(), made)


@takes(SparkMessageOptions)
def to_amqp(
    message: Column | str,
    *,
    mode: Literal["permissive", "fail"] = "fail",
    **options: Unpack[SparkMessageOptions],
) -> Column:
    """Messages as their frames.

    Args:
        message: a struct with columns of the table ``messages`` by their names, as `struct("exchange",
            "routing_key", "body")` makes it; see `amqpcodec.arrow.encode_messages` for others, and for what
            is missing. A name that looks misspelt ends the query.
        mode: ``"fail"``: a message that cannot be written ends the query; ``"permissive"``: it is null.
        options: those of `SparkMessageOptions`. Skipped messages are null.

    Returns:
        Binary, null where the struct is null.

    Raises:
        NotImplementedError: PySpark is older than 4.1; there, columns of structs lose their types in Python.
        TypeError, ValueError: no such mode; an option that cannot be.
    """
    need("to_amqp")
    impl, chosen = options["impl"], select(EncodingOptions, options) | {"mode": mode}
    arrow.encode_values(pa.table({}), **chosen)  # raise now, not in a job

    def encode(arrays: _Arrays) -> _Arrays:
        check_build(impl)
        for messages in arrays:
            given = messages.drop_null()
            batch = pa.RecordBatch.from_struct_array(given)
            octets = arrow.encode_values(batch, **chosen).combine_chunks()
            yield octets if len(given) == len(messages) else _spread(octets, messages)

    functions: Any = sql  # its types do not know `arrow_udf` of iterators
    made: Column = functions.arrow_udf(packaged(encode), BinaryType())(message)
    return made


def _spread(values: pa.Array, over: pa.Array) -> pa.Array:
    """Values put where an array is not null."""
    given = over.is_valid()
    return pc.replace_with_mask(pa.nulls(len(over), values.type), given, values)


def _through_pandas(decode: Callable[[_Arrays], _Arrays], kind: DataType) -> Any:
    """A function of arrays as a function of columns, for Spark before 4.1, which has none."""
    pandas: Any = import_module("pandas")

    def through(series):  # type: ignore[no-untyped-def]
        for structs in decode(pa.array(each, pa.binary(), from_pandas=True) for each in series):
            yield pa.Table.from_struct_array(structs).to_pandas(maps_as_pydicts="strict")

    iterators: Any = Iterator
    hints = {"series": iterators[pandas.Series], "return": iterators[pandas.DataFrame]}
    through.__annotations__ = hints  # Spark goes by these
    made: Any = pandas_udf
    return made(through, kind)
