"""What a file of a writer reports of itself, without a session of Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

from amqpcodec.spark import tasks  # noqa: E402

TIME = pa.timestamp("ns", "UTC")


@pytest.mark.parametrize("column", ["ts", "ts_first", "ts_last"])
def test_a_file_reports_the_first_and_the_last_time_of_all_its_groups(tmp_path: Path, column: str) -> None:
    schema = pa.schema([(column, TIME)])
    file = tasks._File(str(tmp_path / "staged"), "path", schema, "zstd")
    for times in ([5, 7], [None], [9, 3], [4]):
        file.write(pa.table({column: pa.array(times, TIME)}))
    part = file.close()
    assert part.rows == 6
    known = {which: 3 if which == "ts_min" else 9 for which in tasks._TIMES if column in tasks._TIMES[which]}
    assert {which: getattr(part, which) for which in known} == known
