"""Any values of any method: the octets are those of an independent encoder, and come back as they went."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import oracle, strategies, vectors
from support.campaign import in_full
from support.failures import Failures
from support.implementation import Implementation, method_class, properties_class, wanted
from support.oracle import CLASSES, CONTENTS, PROFILES
from support.outcomes import describe
from support.tiers import of_dialects
from support.vectors import arguments, decoded, encodable

# All builds get each example: making one takes longer than encoding and decoding it.
IMPLS = [Implementation(name) for name in wanted()]


def few(examples: int) -> Any:
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ],
    )


def test_the_oracle_agrees_with_the_vectors(dialect: str) -> None:
    failures = Failures()
    for vector in vectors.vectors(dialect, "method", "header", "table"):
        with failures.case(vector["id"]):
            judge = oracle.Oracle(dialect, vector["profile"])
            assert written(judge, vector).hex() == vector["hex"]
    failures.check(at_least=100)


def written(judge: oracle.Oracle, vector: dict[str, Any]) -> bytes:
    fields = vector["fields"]
    if vector["kind"] == "table":
        return judge.table(fields["table"])
    if vector["kind"] == "method":
        return judge.method(vector["name"], vector["channel"], fields)
    sizes = fields["body-size"], fields["weight"]
    return judge.header(vector["name"], vector["channel"], *sizes, fields["properties"])


@pytest.mark.parametrize(("dialect", "class_name"), of_dialects(CLASSES))
def test_methods_of_any_values_go_and_come_back(dialect: str, class_name: str) -> None:
    modules, profile = [impl.dialect(dialect) for impl in IMPLS], PROFILES[dialect]
    judge = oracle.Oracle(dialect, profile)

    @few(6)
    @given(st.integers(0, 65535), strategies.methods(dialect, profile, class_name))
    def check(channel: int, methods: dict[str, dict[str, Any]]) -> None:
        for name, values in methods.items():
            expected = judge.method(name, channel, values)
            assert judge.read_method(expected) == (name, values)
            for module in modules:
                check_method(module, profile, (name, channel, values), expected)

    check()


def check_method(module: ModuleType, profile: str, case: tuple[str, int, Any], octets: bytes) -> None:
    name, channel, values = case
    cls = method_class(module, name)
    method = cls(**arguments(cls.spec.fields, values, profile, encodable))
    assert module.Encoder(profile=profile).encode_method(channel, method) == octets
    [frame] = module.FrameDecoder(profile=profile).feed(octets)
    assert (frame.type, frame.channel, type(frame.payload)) == (1, channel, cls)
    expected = cls(**arguments(cls.spec.fields, values, profile, decoded))
    assert describe(frame.payload) == describe(expected)
    [raw] = module.FrameDecoder(profile=profile, tables="raw").feed(octets)
    assert module.encode_frame(raw) == octets


@pytest.mark.parametrize(("dialect", "class_name"), of_dialects(CONTENTS))
def test_properties_of_any_values_go_and_come_back(dialect: str, class_name: str) -> None:
    modules, profile = [impl.dialect(dialect) for impl in IMPLS], PROFILES[dialect]
    judge = oracle.Oracle(dialect, profile)

    @few(25)
    @given(
        strategies.properties(dialect, profile, class_name), strategies.unsigned(64), strategies.unsigned(16)
    )
    def check(values: dict[str, Any], size: int, weight: int) -> None:
        octets = judge.header(class_name, 7, size, weight, values)
        assert judge.read_header(octets) == (class_name, size, weight, values)
        for module in modules:
            cls = properties_class(module, class_name)
            given_values = cls(**arguments(cls.spec.fields, values, profile, encodable))
            assert (
                module.Encoder(profile=profile).encode_header(7, given_values, size, weight=weight) == octets
            )
            [frame] = module.FrameDecoder(profile=profile).feed(octets)
            expected = cls(**arguments(cls.spec.fields, values, profile, decoded))
            assert describe(frame.payload.properties) == describe(expected)
            assert (frame.payload.body_size, frame.payload.weight) == (size, weight)

    check()


@pytest.mark.parametrize(("dialect", "profile"), of_dialects(PROFILES.items()))
def test_tables_of_any_values_go_and_come_back(dialect: str, profile: str) -> None:
    judge = oracle.Oracle(dialect, profile)

    @few(in_full(60, 30))
    @given(strategies.tables(dialect, profile))
    def check(entries: list[Any]) -> None:
        octets = judge.table(entries)
        for impl in IMPLS:
            assert impl.tables.encode_table(encodable("table", entries, profile), profile) == octets
            table = impl.tables.decode_table(octets, profile)
            assert describe(table) == describe(decoded("table", entries, profile))

    check()
