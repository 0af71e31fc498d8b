"""Rows through Spark beside those of `amqpcodec.arrow` in this process, all of them, whatever the parts.

    python benchmarks/spark_equality.py [--mb 1000] [--tables messages frames ...] [--cores 1 2]

A seeded capture, with packets late, twice and lost, is read whole and as rotated files, in parts of several
sizes. Rows are compared by hashes that do not depend on their order: of each column, and of whole rows. Exit
code 1 if any of them differ.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import spark_damage

HERE = Path(__file__).parent
ROOT = HERE.parent
TABLES = ("messages", "frames", "methods", "connections", "errors", "packets")
FILES = 6  # of the rotated capture
SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.enableVectorizedReader": "false",
}


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
            spark_damage.write(clean, [made / path.name for path in paths], spark_damage.Rates(), seed)
        clean.unlink()
        made.rename(folder / name)
    return sets


def columns_of(table: str) -> list[str]:
    """Every column of a table."""
    from amqpcodec.spark.schemas import optional_columns, table_schema

    return list(dict.fromkeys([*table_schema(table).names, *optional_columns(table)]))


def store(table: str, paths: list[Path], target: Path) -> None:
    """Write the rows that `amqpcodec.arrow` makes as Parquet."""
    from pyarrow import parquet

    from amqpcodec import arrow

    session = arrow.CaptureSession(table, columns=columns_of(table), credentials=True)
    with parquet.ParquetWriter(str(target), session.schema, compression="snappy") as writer:
        for path in paths:
            for batch in session.read(str(path)):
                writer.write_batch(batch)
        for batch in session.finish():
            writer.write_batch(batch)


def leaves(schema: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """What there is to compare in rows: name, and an expression that can be hashed."""
    from pyspark.sql.types import MapType, StructType

    for field in schema:
        name = f"{before}`{field.name}`"
        if isinstance(field.dataType, StructType):
            yield name, f"{name} IS NULL"
            yield from leaves(field.dataType, f"{name}.")
        elif isinstance(field.dataType, MapType):
            yield name, f"transform(map_entries({name}), x -> struct(x.key, x.value IS NULL, x.value))"
        else:
            yield name, name


def digest(frame: Any) -> dict[str, list[int]]:
    """Of every column and of whole rows: what their hashes come to, whatever the order of rows."""
    hashed = {name: f"xxhash64({expression})" for name, expression in leaves(frame.schema)}
    hashed["row"] = f"xxhash64({', '.join(hashed.values())})"
    named = frame.selectExpr(*(f"{value} AS h{at}" for at, value in enumerate(hashed.values())))
    sums = (f"array(bit_xor(h{at}), sum(shiftright(h{at}, 32)), count(*))" for at in range(len(hashed)))
    return dict(zip(hashed, map(list, named.selectExpr(*sums).collect()[0]), strict=True))


def ways(sets: list[list[Path]]) -> Iterator[tuple[list[Path], dict[str, int]]]:
    """How the captures are divided."""
    whole, rotated = sets
    octets = whole[0].stat().st_size
    for parts in (1, 7, 23):
        yield whole, {"maxPartitionBytes": octets // parts + 1}
    yield rotated, {"maxGroupBytes": octets // 3}
    yield rotated, {"maxGroupBytes": 1, "maxPartitionBytes": octets // 17 + 1}


def compare(master: str, tables: list[str], sets: list[list[Path]]) -> int:
    """How many of the ways gave other rows, in one session."""
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    from pyspark.sql import SparkSession

    from amqpcodec.spark.java import local_java

    wrong = 0
    with local_java(), tempfile.TemporaryDirectory(dir=sets[0][0].parent.parent) as scratch:
        builder = SparkSession.builder.master(master)
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        try:
            for table in tables:
                expected = {}
                for paths in sets:
                    target = Path(scratch, "expected.parquet")
                    store(table, paths, target)
                    expected[len(paths)] = digest(spark.read.parquet(str(target)))
                wrong += sum(
                    _differs(spark, table, paths, options, expected[len(paths)], master)
                    for paths, options in ways(sets)
                )
        finally:
            spark.stop()
    return wrong


def _differs(
    spark: Any, table: str, paths: list[Path], options: dict[str, int], expected: Any, master: str
) -> bool:
    begin = perf_counter()
    reader = spark.read.format("amqp").option("table", table).option("columns", ",".join(columns_of(table)))
    frame = reader.options(includeCredentials="true", **options).load([str(path) for path in paths])
    found = digest(frame)
    columns = [name for name in expected if found.get(name) != expected[name]]
    verdict = f"DIFFERENT in {', '.join(columns)}" if columns else "equal"
    print(
        f"{master} {table}: {len(paths)} files, {options}: {expected['row'][2]:,} rows {verdict}, "
        f"{perf_counter() - begin:.1f} s",
        flush=True,
    )
    return bool(columns)


def main() -> int:
    """Make captures, compare in a process for each number of cores."""
    parser = argparse.ArgumentParser(description="Compare rows through Spark with those made without it.")
    parser.add_argument("--mb", type=float, default=1000, help="size of the capture")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--cores", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench", help="for captures")
    given = parser.parse_args()
    sets = captures(given.folder, given.mb, given.seed)
    if len(given.cores) == 1:
        return int(compare(f"local[{given.cores[0]}]", given.tables, sets) > 0)
    command = [sys.executable, __file__, "--mb", str(given.mb), "--seed", str(given.seed)]
    command += ["--folder", str(given.folder), "--tables", *given.tables, "--cores"]
    return max(subprocess.run([*command, str(cores)], check=False).returncode for cores in given.cores)


if __name__ == "__main__":
    sys.exit(main())
