"""Pickles: made by one build, read by the other, and by builds yet to come."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path

import pytest
from support.implementation import Implementation, wanted
from support.outcomes import describe
from support.pickles import samples
from support.subprocesses import output
from support.tiers import few

from amqpcodec import FieldValue, Limits, RawTable

GOLDEN = Path(__file__).resolve().parent.parent / "data" / "pickles"


@pytest.fixture(scope="module")
def expected() -> bytes:
    return repr(describe(samples())).encode()


@cache
def made_by(build: str, protocol: int) -> bytes:
    return output("-m", "support.pickles", "dump", str(protocol), impl=build)


@pytest.mark.parametrize("protocol", few([5, 2, 4], 1, "further protocols"))
@pytest.mark.parametrize("writer", wanted())
def test_a_pickle_of_one_build_loads_in_the_other(
    impl: Implementation, expected: bytes, writer: str, protocol: int
) -> None:
    made = made_by(writer, protocol)
    assert output("-m", "support.pickles", "load", impl=impl.name, stdin=made) == expected


@pytest.mark.parametrize("golden", ["c", "py"])
def test_golden_pickles_load(impl: Implementation, expected: bytes, golden: str) -> None:
    stored = (GOLDEN / f"{golden}-0.1.0.pickle").read_bytes()
    assert output("-m", "support.pickles", "load", impl=impl.name, stdin=stored) == expected


def test_records_refer_to_public_names_only() -> None:
    made = pickle.dumps(samples(), protocol=0)
    assert b"_kernel" not in made
    assert b"_generated" not in made


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_values_that_both_builds_share(protocol: int) -> None:
    for value in (FieldValue("u", 5), RawTable(b"\x01kV", "0-9"), Limits(table_depth=5)):
        assert pickle.loads(pickle.dumps(value, protocol)) == value
