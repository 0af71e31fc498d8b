"""The options of the data source: names and text as Spark passes them, to values.

`amqpcodec.options` declares them; ``frame_max`` is ``frameMax`` here, and text is read by its kind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain
from typing import Any, cast

from .._nearest import nearest_hint
from .._options import declared, resolve
from ..options import SparkReadOptions, SparkWriteOptions
from .files import without_secret

_SHOWN = 100  # characters of a wrong text
_OF_TABLE = "provider"  # stands beside the options in CREATE TABLE
VIEW = (
    "Spark passes none of its options to a source of Python; "
    "CREATE TEMPORARY VIEW name USING amqp OPTIONS (path '...') keeps them"
)


def read_options(options: Mapping[str, str]) -> SparkReadOptions:
    """The options of reading; errors as for `parsed`, and for paths with a secret.

    `paths` is what Spark makes of a call of ``load`` with several: JSON. Of a single one, it makes `path`.
    """
    paths = [
        _paths(text) if name.lower() == "paths" else [text]
        for name, text in options.items()
        if name.lower() in ("path", "paths")
    ]
    others = {name: text for name, text in options.items() if name.lower() not in ("path", "paths")}
    checked = tuple(map(without_secret, chain(*paths)))
    return cast(SparkReadOptions, parsed(others, SparkReadOptions) | {"paths": checked})


def _paths(text: str) -> list[str]:
    try:
        paths = json.loads(text)
    except (ValueError, RecursionError):
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        shown = without_secret(text) if len(text) <= _SHOWN else f"{without_secret(text)[:_SHOWN]}..."
        raise ValueError(f"option 'paths': {shown!r} is no JSON list of paths; for one path, give 'path'")
    return paths


def write_options(options: Mapping[str, str]) -> SparkWriteOptions:
    """The options of writing.

    Raises:
        ValueError: no path, or one with a secret; an option that is not known, or whose text is no value of
            it.
    """
    made = cast(SparkWriteOptions, parsed(options, SparkWriteOptions))
    if not without_secret(made["path"]):
        raise ValueError("no path: say where to save")
    keys = list(made["keys"])
    if keys and made["output"] != "rows":
        raise ValueError(f"option 'keys' is for the output rows, not {made['output']}")
    if len(set(keys)) < len(keys):
        raise ValueError("option 'keys' names a column twice")
    return made


def parsed(options: Mapping[str, str], known: type) -> dict[str, Any]:
    """The value of every option of a `TypedDict`.

    Args:
        options: names, in which neither case nor underscores count, to text.
        known: the `TypedDict`.

    Raises:
        ValueError: an option that is not known, given twice, or whose text is no value of it; those of a
            table in Spark's catalog.
    """
    if _OF_TABLE in options:
        raise ValueError(f"a table of Spark's catalog cannot be read: {VIEW}")
    names = {_folded(name): name for name in declared(known)}
    values: dict[str, Any] = {}
    for given, text in options.items():
        name = names.get(_folded(given))
        if name is None:
            there = list(map(spark_name, declared(known)))
            hint = nearest_hint(given, there, what="option")
            raise ValueError(f"no option {given!r}; there are {', '.join(there)}{hint}")
        if name in values:
            raise ValueError(f"option {spark_name(name)!r} is given twice")
        try:
            values[name] = declared(known)[name].kind.parse_spark(text)
        except ValueError as error:
            raise ValueError(f"option {spark_name(name)!r}: {error}") from error
    return resolve(known, values)


def spark_name(name: str) -> str:
    """The name of an option in Spark."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _folded(name: str) -> str:
    return name.lower().replace("_", "")
