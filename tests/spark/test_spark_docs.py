"""The Python and the commands of the pages on Spark run, in a process whose folder has what they name."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.command import TROUBLE
from support.documents import CAPTURE, DOCS, ROOT, examples, make_captures
from support.spark_jobs import SETTINGS, run
from test_docs_cookbook import answers, check

pytestmark = pytest.mark.spark

BEGINNERS = "start/spark.md"
PAGES = ("spark.md", "spark-tables.md", BEGINNERS)
SCRIPT = r"""
import contextlib, shutil, sys
from pathlib import Path
sys.path.insert(0, given["tests"])
os.chdir(given["folder"])
spark = session().master("local[1]").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
from pyspark.sql.functions import struct
from support.documents import DOCS, run_page
from amqpcodec import rabbitmq
from amqpcodec.cli import main
from amqpcodec.spark import parquet_to_stream, pcap_to_parquet
ack = rabbitmq.encode_method(1, rabbitmq.Basic.Ack(delivery_tag=1))
row = (ack, ack, ack, "c", 1, 1, 0, 0, "orders", "eu", b"body")
columns = "frame binary, payload binary, chunk binary, connection string, ts long, flow long, " \
    "direction int, offset long, exchange string, routing_key string, body binary"
pcap_to_parquet(spark, "captures", "all.parquet")
for page in given["pages"]:
    if page != "spark.md":  # which makes it
        shutil.rmtree("messages.parquet", ignore_errors=True)
        shutil.copytree("all.parquet", "messages.parquet")
    run_page(DOCS / page, {
        "spark": spark, "SparkSession": SparkSession, "struct": struct, "path": "captures",
        "df": spark.createDataFrame([row], columns), "parquet_to_stream": parquet_to_stream,
        "messages": spark.read.format("amqp").load("captures"),
    })
    for query in spark.streams.active:
        query.stop()
    found = sorted(path.name for path in Path().iterdir())
shutil.rmtree("messages.parquet")
settings = [part for name, value in given["settings"].items() for part in ("--conf", f"{name}={value}")]
with contextlib.redirect_stdout(sys.stderr):
    codes = [main([*arguments, "--master", "local[1]", *settings]) for arguments in given["commands"]]
report(codes=codes, found=found, converted=os.path.exists("messages.parquet/_SUCCESS"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The captures that the pages name, or find by patterns."""
    folder = tmp_path_factory.mktemp("pages")
    for page in PAGES:
        make_captures(folder, examples(DOCS / page))
    (folder / "captures").mkdir(exist_ok=True)
    shutil.copy(CAPTURE, folder / "captures" / "trace_1.pcap")
    return folder


def test_the_pages_on_spark_run(java: None, folder: Path) -> None:
    lines = [line for block in examples(DOCS / BEGINNERS, "sh") for line in block.code.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("amqpcodec ")]
    assert commands
    given: dict[str, Any] = {"folder": str(folder), "tests": str(ROOT / "tests"), "pages": PAGES}
    found = run(SCRIPT, SETTINGS, commands=commands, **given)
    assert found["codes"] == [0] * len(commands)
    assert found["converted"]
    assert {"corpus", "methods.parquet"} <= set(found["found"])


QUESTIONS = r"""
import re
os.chdir(given["folder"])
spark = session().master("local[1]").getOrCreate()
from amqpcodec.spark import register
register(spark)
exec(given["views"])
found = {title: spark.sql(query).collect() for title, query in given["queries"]}
report(**{title: [str(tuple(row)) for row in rows] for title, rows in found.items()})
"""


def test_the_questions_of_the_cookbook_have_the_same_answers_in_spark(java: None, tmp_path: Path) -> None:
    """Those of the page on Spark; `why was a channel closed` is another query than a command."""
    section = (DOCS / "spark.md").read_text(encoding="utf-8").partition("\n## Questions\n")[2]
    section = section.partition("\n## ")[0]
    [views] = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    queries = re.findall(r"\*\*([^*]+\?)\*\*.*?```sql\n(.*?)```", section, re.DOTALL)
    (tmp_path / "captures").mkdir()
    shutil.copy(TROUBLE, tmp_path / "captures" / "trouble.pcap")
    found = run(QUESTIONS, SETTINGS, folder=str(tmp_path), views=views, queries=queries)
    known = {each.question: each for each in answers("A broker in trouble") if each.code.startswith("ask(")}
    assert known.keys() <= found.keys()
    for question, answer in known.items():
        rows = found[question]
        if question == "Is the recording whole?":
            rows = [row.replace(", None)", ")") for row in rows]  # Spark is asked for dropped packets, too
        check(answer, "".join(f"{row}\n" for row in rows))
