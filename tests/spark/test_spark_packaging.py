"""Where something is missing, the error says what, and other sources do not suffer."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import pytest

pytest.importorskip("pyspark")

from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource

from amqpcodec.spark import reading
from amqpcodec.spark.options import read_options
from amqpcodec.spark.packaging import packaged, unpacker
from amqpcodec.spark.planning import Part
from amqpcodec.spark.readers import AmqpReader
from amqpcodec.spark.schemas import table_schema
from amqpcodec.spark.source import AmqpSource, register


@pytest.fixture(params=["reader", "stream reader", "writer"])
def sent(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """An object that Spark sends to workers."""
    source = AmqpSource({"path": str(tmp_path / "x")})
    if request.param == "writer":
        return source.writer(table_schema(), overwrite=False)
    return (source.reader if request.param == "reader" else source.streamReader)(table_schema())


def test_a_reader_arrives_as_it_was_sent() -> None:
    sent = AmqpReader(read_options({"table": "frames"}), table_schema("frames"))
    arrived = pickle.loads(cloudpickle.dumps(sent))
    assert type(arrived) is AmqpReader
    assert vars(arrived) == vars(sent) | {"_failed": None}  # why it has no plan is for the driver


def test_what_is_sent_arrives(sent: Any) -> None:
    arrived = pickle.loads(cloudpickle.dumps(sent))
    assert type(arrived) is type(sent)
    assert vars(arrived).keys() == vars(sent).keys()


def test_a_worker_without_the_package_says_how_to_send_it(sent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    octets = cloudpickle.dumps(sent)
    for name in [name for name in sys.modules if name.partition(".")[0] == "amqpcodec"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "amqpcodec", None)
    with pytest.raises(ImportError, match=r"a worker of Spark cannot import .*amqpcodec.*spark\.archives"):
        pickle.loads(octets)


def test_functions_say_what_a_worker_lacks_when_they_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def whole(batches: Iterator[int]) -> list[str]:
        reading.check_build("py")
        return [str(each) for each in batches]

    sent = packaged(whole)
    assert (sent.__name__, get_type_hints(sent)) == ("whole", {"given": Iterator[int], "return": list[str]})
    octets = cloudpickle.dumps(sent)
    assert pickle.loads(octets)(iter([1, 2])) == ["1", "2"]
    for name in [name for name in sys.modules if name.partition(".")[0] == "amqpcodec"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "amqpcodec", None)
    with pytest.raises(ImportError, match=r"a worker of Spark cannot import .*amqpcodec.*spark\.archives"):
        pickle.loads(octets)(iter([1, 2]))


def test_a_worker_without_the_compiled_part_refuses_to_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "IMPL", "py")
    with pytest.raises(reading.NotCompiledError, match="without its compiled part"):
        next(reading.batches(Part("capture", ()), ["ts"], read_options({})))
    assert list(reading.batches(Part("capture", ()), ["ts"], read_options({"impl": "py"}))) == []


class Registry:
    """A session that refuses every source, and its own `dataSource`."""

    def __init__(self, condition: str) -> None:
        self.condition = condition
        self.asked: list[type] = []
        self.dataSource = self

    def register(self, source: type) -> None:
        self.asked.append(source)
        raise AnalysisException(message="refused", errorClass=self.condition)


def test_a_source_that_spark_has_found_may_be_registered() -> None:
    found: Any = Registry("DATA_SOURCE_ALREADY_EXISTS")
    register(found)
    assert found.asked == [AmqpSource]


def test_what_else_forbids_registering_is_raised() -> None:
    broken: Any = Registry("SOMETHING_ELSE")
    with pytest.raises(AnalysisException, match="refused"):
        register(broken)


def test_what_is_sent_is_called_with_its_arguments() -> None:
    assert unpacker()(pickle.dumps((max, (2, 3)))) == 3


def discovered(monkeypatch: pytest.MonkeyPatch, **missing: ModuleType | None) -> Any:
    """What Spark finds in `pyspark_amqp` when modules are missing."""
    for name in ("pyspark_amqp", "pyspark_amqp.missing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name, module in missing.items():
        monkeypatch.setitem(sys.modules, name.replace("__", "."), module)
    import pyspark_amqp

    return pyspark_amqp.DefaultSource


def test_spark_finds_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    assert discovered(monkeypatch) is AmqpSource
    assert AmqpSource.name() == "amqp"


def test_a_source_that_cannot_be_imported_says_so_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    found = discovered(monkeypatch, amqpcodec__spark__source=None)
    assert issubclass(found, DataSource)
    assert found.name() == "amqp"
    for use in (found({}).schema, lambda: found({}).reader(None)):
        with pytest.raises(ImportError, match=r"amqpcodec\.spark cannot be imported: .*source"):
            use()


def test_without_data_sources_nothing_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: dict[str, None] = {"amqpcodec__spark__source": None, "pyspark__sql__datasource": None}
    assert discovered(monkeypatch, **missing) is None
