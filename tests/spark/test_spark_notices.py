"""A port without AMQP: Spark says so, and what to try, as `amqpcodec convert` does."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from support import make_capture as make

from amqpcodec.spark import pcap_to_parquet, table_schema
from amqpcodec.spark.notices import NothingFoundWarning, warn_of_files
from amqpcodec.spark.options import read_options
from amqpcodec.spark.planning import bad_part
from amqpcodec.spark.readers import AmqpReader

BUNNY = Path(__file__).parents[2] / "examples" / "real-bunny.pcap"
ELSEWHERE = "; port 5672 has AMQP: try port=5672"


def read(table: str = "messages", **options: str) -> int:
    """How many rows a worker reads."""
    given = {"table": table, "path": str(BUNNY), **options}
    reader = AmqpReader(read_options(given), table_schema(table))
    return sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))


@pytest.mark.parametrize("table", ["messages", "frames", "connections", "packets"])
def test_a_worker_warns_of_a_part_without_a_row(table: str) -> None:
    with pytest.warns(NothingFoundWarning) as caught:
        assert read(table, port="5673") == 0
    assert str(caught[0].message) == f"no {table} found in '{BUNNY}' on port 5673{ELSEWHERE}"


def test_several_ports_are_all_named() -> None:
    with pytest.warns(NothingFoundWarning, match=rf"on ports 7, 5673{ELSEWHERE}$"):
        read(port="5673,7")


def test_another_port_is_not_suggested_where_this_one_is_right(tmp_path: Path) -> None:
    talk = make.Talk(make.Truth(), 0, (100, 200))
    talk.open()
    (tmp_path / "opened.pcap").write_bytes(make.pcap(talk.truth.packets))
    with pytest.warns(NothingFoundWarning, match=r"on port 5672$"):
        assert not read(path=str(tmp_path / "opened.pcap"))


def test_there_is_no_warning_of_an_empty_table_of_errors_or_of_a_port_with_amqp() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read() > 0
        assert read("errors", port="5673") == 0
        assert read(mode="dropmalformed", port="5673") == 0


@pytest.mark.parametrize("recordings", [[], [(bad_part("odd.bin", "it is no capture"),)]])
def test_a_warning_of_files_names_the_line_of_who_called_the_caller(recordings: list[Any]) -> None:
    def caller() -> None:
        warn_of_files(recordings, ["odd.bin"])

    with pytest.warns(UserWarning, match=r"^nothing to read|odd\.bin") as caught:
        caller()
    line = caller.__code__.co_firstlineno + 4
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)] * len(caught)


@pytest.mark.spark
def test_a_conversion_warns_of_captures_without_a_row(spark: Any, tmp_path: Path) -> None:
    with pytest.warns(NothingFoundWarning, match=rf"^no messages found on port 5673{ELSEWHERE}$"):
        pcap_to_parquet(spark, str(BUNNY), str(tmp_path / "out"), port=5673)
    assert (tmp_path / "out" / "_SUCCESS").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error", NothingFoundWarning)
        pcap_to_parquet(spark, str(BUNNY), str(tmp_path / "all"), port=None)
