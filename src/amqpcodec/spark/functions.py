"""Column functions: octets of frames to a struct, and messages back to octets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import BinaryType, DataType

from .. import arrow
from ..arrow.decoding import DIALECT
from ..arrow.encoding import FRAME_MAX
from .options import MODES, one_of
from .reading import check_build
from .schemas import data_type
from .shipping import shipped
from .versions import need

_Arrays = Iterator[pa.Array]


def from_amqp(
    col: Column | str,
    table: str = "frames",
    *,
    columns: Iterable[str] | None = None,
    mode: str = "permissive",
    impl: str = "c",
    **options: Any,
) -> Column:
    """The octets of frames as a struct of the columns of a table.

    Each value is read by itself, and expected to have one row of the table in it: one frame, one method, or
    the frames of one message. In the struct, `_error` tells of any other; docs/columns.md has its codes.

    Args:
        col: a binary column.
        table: ``"frames"``, ``"methods"`` or ``"messages"``.
        columns: names of the columns wanted, those in a struct with a dot; None for all but the optional ones
            and those that tell of files and packets. Fewer are faster.
        mode: ``"permissive"``: a damaged value is a struct with `_error`; ``"failfast"``: it ends the query.
        impl: the build that decodes in the workers, ``"c"`` or ``"py"``.
        options: `dialect`, `direction`, `credentials`, `max_frame` and `limits` of
            `amqpcodec.arrow.ValueDecoder`.

    Returns:
        A struct, null where the value is null. To Spark it is not deterministic, so that it is evaluated once
        however many of its fields are used.

    Raises:
        ValueError: no such table, column, dialect or mode.
    """
    chosen = {"columns": None if columns is None else list(columns), "mode": _mode(mode), **options}
    fields = list(arrow.ValueDecoder(table, impl="py", **chosen).schema)

    def decode(arrays: _Arrays) -> _Arrays:
        check_build(impl)
        decoder = arrow.ValueDecoder(table, impl=impl, **chosen)
        for values in arrays:
            batch = decoder.decode(values)
            yield pa.StructArray.from_arrays(batch.columns, fields=fields, mask=values.is_null())

    arrow_udf: Any = getattr(sql, "arrow_udf", None)
    kind = data_type(pa.struct(fields))
    made: Column = (arrow_udf or _through_pandas)(shipped(decode), kind).asNondeterministic()(col)
    if arrow_udf is not None:
        return made
    # Pandas has no null in place of several columns.
    return sql.when((sql.col(col) if isinstance(col, str) else col).isNotNull(), made)


def to_amqp(
    message: Column | str,
    *,
    dialect: str = DIALECT,
    frame_max: int = FRAME_MAX,
    mode: str = "failfast",
    impl: str = "c",
) -> Column:
    """Messages as the octets of their frames.

    Args:
        message: a struct with columns of the table ``messages`` by their names, as `struct("exchange",
            "routing_key", "body")` makes it; others are passed over, and what is missing takes its default,
            as `amqpcodec.arrow.encode_messages` tells.
        dialect: the dialect to write.
        frame_max: octets of the largest frame; 0 for no limit.
        mode: ``"failfast"``: a message that cannot be written, that has an error or is incomplete ends the
            query; ``"permissive"``: it is null.
        impl: the build that workers are to have: ``"c"``, or ``"py"`` if any will do.

    Returns:
        Binary, null where the struct is null.

    Raises:
        NotImplementedError: PySpark is older than 4.1; there, columns of structs lose their types in Python.
        ValueError: no such mode.
    """
    need("to_amqp")
    options: dict[str, Any] = {"dialect": dialect, "frame_max": frame_max, "mode": _mode(mode)}

    def encode(arrays: _Arrays) -> _Arrays:
        check_build(impl)
        for messages in arrays:
            given = messages.drop_null()
            batch = pa.RecordBatch.from_struct_array(given)
            octets = arrow.encode_values(batch, **options).combine_chunks()
            yield octets if len(given) == len(messages) else _spread(octets, messages)

    made: Column = sql.arrow_udf(shipped(encode), BinaryType())(message)  # type: ignore[attr-defined]
    return made


def _spread(values: pa.Array, over: pa.Array) -> pa.Array:
    """Values put where an array is not null."""
    given = over.is_valid()
    return pc.replace_with_mask(pa.nulls(len(over), values.type), given, values)


def _mode(mode: str) -> str:
    return MODES[one_of("permissive", "failfast")(mode)]


def _through_pandas(decode: Callable[[_Arrays], _Arrays], kind: DataType) -> Any:
    """A function of arrays as one of columns where Spark has none such: before 4.1."""
    pandas: Any = import_module("pandas")

    def through(series):  # type: ignore[no-untyped-def]
        for structs in decode(pa.array(each, pa.binary(), from_pandas=True) for each in series):
            yield pa.Table.from_struct_array(structs).to_pandas(maps_as_pydicts="strict")

    iterators: Any = Iterator
    hints = {"series": iterators[pandas.Series], "return": iterators[pandas.DataFrame]}
    through.__annotations__ = hints  # Spark goes by these
    made: Any = pandas_udf
    return made(through, kind)
