"""Compares rows through Spark with those of `amqpcodec.arrow` in this process, whatever the parts.

    python tools/spark_equality.py [--mb 1000] [--tables messages ...] [--captures FILE ...]

A seeded capture, with packets late, twice and lost, is read whole and as rotated files whose names are given
in another order, in parts of several sizes, by two cores and by one. Rows are compared by hashes of all there
is in them, whatever their order; where these differ, columns are compared one by one, to name those that do.
Exit code 1 if any rows differ.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import damage_capture

from amqpcodec.options import TABLES

ROOT = Path(__file__).resolve().parent.parent
SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.driver.memory": "8g",  # for the states of all parts
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}
FILES = 6  # of the rotated capture
CORES = (2, 1)


class Way(NamedTuple):
    """How a capture is read: cores of the session, files as they are named to it, options of the source."""

    cores: int
    paths: list[str]
    options: dict[str, int]

    def __str__(self) -> str:
        given = ", ".join(f"{name} {value}" for name, value in self.options.items())
        return f"local[{self.cores}], {len(self.paths)} files, {given}"


def ways(paths: list[Path]) -> Iterator[Way]:
    """One file in parts; several that follow each other in groups and in parts, named in any order."""
    octets = sum(path.stat().st_size for path in paths)
    names = random.Random(len(paths)).sample([str(path) for path in paths], len(paths))
    if len(paths) == 1:
        yield Way(2, names, {"maxPartitionBytes": octets // 7 + 1})
        yield Way(1, names, {"maxPartitionBytes": octets // 23 + 1})
    else:
        yield Way(2, names, {"maxGroupBytes": octets // 2})
        yield Way(2, names, {"maxGroupBytes": 1, "maxPartitionBytes": octets // 17 + 1})


def captures(folder: Path, megabytes: float, seed: int) -> list[list[Path]]:
    """A damaged capture as one file, and as several; made if it is not there."""
    name = f"equality-{megabytes:g}-{seed}"
    sets = [
        [folder / name / "whole.pcap"],
        [folder / name / f"rotated_{number:05}.pcap" for number in range(1, FILES + 1)],
    ]
    if not (folder / name).exists():
        made = folder / f"{name}.making"
        made.mkdir(parents=True, exist_ok=True)
        clean = made / "clean"
        command = [sys.executable, str(ROOT / "tools" / "synthetic_capture.py"), str(clean)]
        subprocess.run([*command, "--mb", str(megabytes), "--seed", str(seed)], check=True, stdout=sys.stderr)
        for paths in sets:
            damage_capture.write(clean, [made / path.name for path in paths], damage_capture.Rates(), seed)
        clean.unlink()
        made.rename(folder / name)
    return sets


def columns_of(table: str) -> list[str]:
    """Every column of a table that the library has, too."""
    from amqpcodec.spark.schemas import optional_columns, table_schema, without_recording

    names = [*table_schema(table).names, *optional_columns(table)]
    return without_recording(dict.fromkeys(names))


def store(table: str, paths: list[Path], target: Path) -> None:
    """Write the rows that `amqpcodec.arrow` makes as Parquet."""
    from pyarrow import parquet

    from amqpcodec import arrow

    session = arrow.CaptureSession(table, columns=columns_of(table), include_credentials=True)
    with parquet.ParquetWriter(str(target), session.schema, compression="snappy") as writer:
        for path in paths:
            for batch in session.read(str(path)):
                writer.write_batch(batch)
        for batch in session.finish():
            writer.write_batch(batch)


def hashes(schema: Any, before: str = "") -> Iterator[str]:
    """Expressions for the hashes of all values in a row; a null and an empty value have different ones."""
    from pyspark.sql.types import MapType, StructType

    for field in schema:
        name = value = f"{before}`{field.name}`"
        if isinstance(field.dataType, StructType):
            yield f"xxhash64({name} IS NULL)"
            yield from hashes(field.dataType, f"{name}.")
            continue
        if isinstance(field.dataType, MapType):
            value = f"transform(map_entries({name}), x -> struct(x.key, x.value IS NULL, x.value))"
        yield f"xxhash64({name} IS NULL, {value})"


def digest(frame: Any) -> tuple[Any, ...]:
    """Return how many rows a frame has, what their hashes come to in any order, and its types."""
    rows = frame.selectExpr(f"xxhash64({', '.join(hashes(frame.schema))}) AS hash")
    sums = ("count(*)", "bit_xor(hash)", "sum(shiftright(hash, 32))", "sum(hash & 4294967295)")
    return (*rows.selectExpr(*sums).collect()[0], frame.schema.simpleString())


def difference(found: Any, expected: Any, wanted: tuple[Any, ...]) -> str:
    """Say what two frames differ in; nothing if they do not. `wanted` is the digest of the second."""
    if (digests := digest(found)) == wanted:
        return ""
    names = [name for name in expected.columns if digest(found.select(name)) != digest(expected.select(name))]
    return f"{digests[0]:,} rows that differ in {', '.join(names) or 'what stands together in a row'}"


@contextmanager
def session(cores: int) -> Iterator[Any]:
    """A session of Spark."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master(f"local[{cores}]").config(map=SETTINGS).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def read(spark: Any, table: str, way: Way) -> Any:
    """Rows through Spark."""
    columns = ",".join(columns_of(table))
    reader = spark.read.format("amqp").options(table=table, columns=columns, includeCredentials="true")
    return reader.options(**way.options).load(way.paths)


def compare(tables: list[str], sets: list[list[Path]], scratch: Path) -> dict[str, Any]:
    """Compare recordings in all ways: rows of each table, and of each way the tables that differ."""
    wanted: dict[Path, tuple[Any, ...]] = {}
    rows: dict[str, int] = {}
    apart: dict[str, list[str]] = {}
    every = [(number, paths, way) for number, paths in enumerate(sets) for way in ways(paths)]
    for cores in CORES:
        with session(cores) as spark:
            for table, (number, paths, way) in product(tables, every):
                if way.cores != cores:
                    continue
                stored = scratch / f"{table}-{number}.parquet"
                begin = perf_counter()
                if stored not in wanted:
                    store(table, paths, stored)
                    wanted[stored] = digest(spark.read.parquet(str(stored)))
                rows[table] = wanted[stored][0]
                expected = spark.read.parquet(str(stored))
                verdict = difference(read(spark, table, way), expected, wanted[stored])
                apart.setdefault(str(way), []).extend([table] if verdict else [])
                took = perf_counter() - begin
                print(f"{way}: {table}: {rows[table]:,} rows {verdict or 'equal'}, {took:.1f} s", flush=True)
    return {"rows": rows, "apart": apart}


def main() -> int:
    """Make captures, compare, store."""
    parser = argparse.ArgumentParser(description="Compare rows through Spark with those made without it.")
    parser.add_argument("--mb", type=float, default=1000, help="size of the capture")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--captures", nargs="+", type=Path, default=[], help="instead of the seeded one")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench", help="for captures and rows")
    parser.add_argument("--result", type=Path, help="JSON file to write")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    from amqpcodec.spark.java import local_java

    folder = given.folder.resolve()  # in rows of Spark, paths are whole
    folder.mkdir(parents=True, exist_ok=True)
    sets = [[path.resolve()] for path in given.captures] or captures(folder, given.mb, given.seed)
    with local_java(), tempfile.TemporaryDirectory(dir=folder) as scratch:
        found = compare(given.tables, sets, Path(scratch))
    if given.result:
        octets = sum(path.stat().st_size for path in sets[0])
        given.result.write_text(json.dumps({"octets": octets, **found}, indent=1) + "\n", encoding="utf-8")
    return int(any(found["apart"].values()))


if __name__ == "__main__":
    sys.exit(main())
