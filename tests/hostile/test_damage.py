"""Every method, property and table, damaged: both builds and the oracle say the same of it.

The strategies come from the same facts as the dialects, so that nothing in them goes untried. The default
run is small and always the same; ``AMQPCODEC_FUZZ_EXAMPLES`` asks for more, chosen at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import oracle, strategies
from support.campaign import ASKED, share, stride
from support.implementation import Implementation, method_class, properties_class
from support.oracle import CLASSES, CONTENTS, PROFILES
from support.outcomes import decoding, describe
from support.tiers import of_dialects
from support.vectors import arguments, decoded

from amqpcodec._protocol.index import DIALECTS

Both = tuple[Implementation, Implementation]


def examples(bounded: int) -> Any:
    """A few examples, always the same; or as many new ones as requested."""
    return settings(
        max_examples=share(bounded),
        derandomize=not ASKED,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


class Judges:
    """Both builds and the oracle, for frames of one dialect."""

    def __init__(self, both: Both, dialect: str) -> None:
        self.profile = PROFILES[dialect]
        self.modules = [impl.dialect(dialect) for impl in both]
        self.oracle = oracle.Oracle(dialect, self.profile)
        self.lenient = [module.FrameDecoder(profile=self.profile) for module in self.modules]
        self.strict = [module.FrameDecoder(profile=self.profile, strict=True) for module in self.modules]
        self.messages = [module.MessageDecoder(profile=self.profile) for module in self.modules]

    def agree(self, frame: bytes) -> None:
        """One frame with a valid envelope: the same of both builds in each mode, and as the oracle has it."""
        for decoders in (self.strict, self.messages):
            self.same(decoders, [frame])
        values, error, pending, _ = self.same(self.lenient, [frame])
        try:
            expected = self.expected(frame)
        except oracle.Malformed:
            assert error is not None, frame
        else:
            assert (values, error, pending) == ([describe(expected)], None, 0), frame

    def same(self, decoders: list[Any], chunks: list[bytes]) -> Any:
        outcomes = []
        for decoder in decoders:
            decoder.reset()
            outcomes.append(decoding(decoder, chunks))
        assert outcomes[0] == outcomes[1], chunks
        return outcomes[0]

    def split(self, frame: bytes) -> None:
        """One frame in two chunks, cut at many positions: always as it is in one."""
        for decoders in (self.lenient, self.messages):
            whole = self.same(decoders, [frame])
            for at in range(1, len(frame), stride(7)):
                assert self.same(decoders, [frame[:at], frame[at:]]) == whole, at

    def expected(self, frame: bytes) -> Any:
        module: ModuleType = self.modules[1]
        channel = int.from_bytes(frame[1:3], "big")
        records = Implementation("py").records
        if frame[0] == 1:
            name, values = self.oracle.read_method(frame)
            cls = method_class(module, name)
            return records.Frame(1, channel, cls(**arguments(cls.spec.fields, values, self.profile, decoded)))
        name, size, weight, values = self.oracle.read_header(frame)
        cls = properties_class(module, name)
        properties = cls(**arguments(cls.spec.fields, values, self.profile, decoded))
        return records.Frame(2, channel, records.ContentHeader(properties, size, weight))


def resized(frame: bytes, payload: bytes) -> bytes:
    return frame[:3] + len(payload).to_bytes(4, "big") + payload + b"\xce"


def truncations(frame: bytes, seed: int) -> Iterator[bytes]:
    """The frame with its payload cut to every length, of a long one to some 20, and one octet too long."""
    payload = frame[7:-1]
    step = 1 if ASKED else 1 + len(payload) // 20
    for size in range(seed % step, len(payload), step):
        yield resized(frame, payload[:size])
    yield resized(frame, payload + b"\0")


def flips(frame: bytes, seed: int, count: int) -> Iterator[bytes]:
    """The frame with octets of its payload replaced, some by values that lengths and tags are made of."""
    tags = b"\0\1\x7f\x80\xff" + oracle.RABBITMQ_TAGS.encode() + b"cCkz"
    for turn in range(count):
        octets = bytearray(frame)
        position = 7 + (seed * 31 + turn * 17) % max(1, len(frame) - 8)
        octets[position] ^= 1 << (seed + turn) % 8
        yield bytes(octets)
        octets[position] = tags[(seed + turn) % len(tags)]
        yield bytes(octets)


def damage(judges: Judges, frame: bytes, seed: int) -> None:
    judges.agree(frame)
    for damaged in truncations(frame, seed):
        judges.agree(damaged)
    if len(frame) > 8:
        for damaged in flips(frame, seed, 12 if ASKED else 4):
            judges.agree(damaged)


@pytest.mark.parametrize(("dialect", "class_name"), of_dialects(CLASSES))
def test_methods(both: Both, dialect: str, class_name: str) -> None:
    judges = Judges(both, dialect)

    @examples(2)
    @given(strategies.methods(dialect, judges.profile, class_name), strategies.unsigned(16))
    def check(methods: dict[str, dict[str, Any]], seed: int) -> None:
        for name, values in methods.items():
            frame = judges.oracle.method(name, seed, values)
            damage(judges, frame, seed)
            judges.split(frame[:200])

    check()


@pytest.mark.parametrize(("dialect", "class_name"), of_dialects(CONTENTS))
def test_properties(both: Both, dialect: str, class_name: str) -> None:
    judges = Judges(both, dialect)

    @examples(3)
    @given(strategies.properties(dialect, judges.profile, class_name), strategies.SIZE_AND_WEIGHT)
    def check(values: dict[str, Any], size_and_weight: tuple[int, int]) -> None:
        seed = size_and_weight[1]
        frame = judges.oracle.header(class_name, 1 + seed % 9, *size_and_weight, values)
        damage(judges, frame, seed)
        judges.split(frame[:200])

    check()


@pytest.mark.parametrize("dialect", of_dialects(DIALECTS))
def test_tables(both: Both, dialect: str) -> None:
    judges = Judges(both, dialect)
    table = strategies.tables(dialect, judges.profile)

    @examples(5)
    @given(table, strategies.unsigned(16), st.binary(max_size=3))
    def check(entries: list[Any], seed: int, tail: bytes) -> None:
        frame = judges.oracle.header("basic", 1, 0, 0, {"headers": entries})
        damage(judges, frame, seed)
        damage(judges, resized(frame, frame[7:-1] + tail), seed)

    check()
