"""Malformed input: refused with the right reply code, the same in both builds and however it is cut."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from support import vectors
from support.implementation import Implementation
from support.outcomes import decoding, drain, octet_by_octet

from amqpcodec import DecodeError, Limits

DIALECTS = {"0-8": "amqp-0-8", "0-9": "amqp-0-9", "0-9-1": "amqp-0-9-1", "rabbitmq": "rabbitmq-0-9-1"}
CASES = {
    f"{case['id']}{'-s2c' if key == 'hex_s2c' else ''}": (case, key)
    for case in vectors.load("bad-inputs-public")
    for key in ("hex", "hex_s2c")
    if key in case
}
BY_EXPECTATION = {
    wanted: [name for name, (case, _) in CASES.items() if case["expect"] == wanted]
    for wanted in ("error", "need-more", "ok", "policy")
}
CUTS = {"whole": lambda data: [data], "octet-by-octet": octet_by_octet}


def decoder_for(impl: Implementation, case: dict[str, Any]) -> Any:
    """The decoder that sees the fault; in the middle of a session unless the case is its first octets."""
    module = impl.dialect(DIALECTS[case["dialect"]])
    given = case.get("limits", {})
    options = {
        "frame_max": given.get("frame_max", 131072),
        "limits": Limits(table_depth=given.get("max_depth", 128)),
    }
    decoder = (module.MessageDecoder if case["layer"] == "assembly" else module.FrameDecoder)(**options)
    if case["state"] != "header":
        assert len(list(decoder.feed(module.encode_heartbeat()))) == 1
    return decoder


def frames_before(case: dict[str, Any], key: str) -> int:
    count = case.get("frames_before", 0)
    return int(case.get("frames_before_s2c", count) if key == "hex_s2c" else count)


def test_every_case_is_of_a_known_expectation() -> None:
    assert sorted(chain(*BY_EXPECTATION.values())) == sorted(CASES)
    assert all(BY_EXPECTATION.values())


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", BY_EXPECTATION["error"])
def test_faults_are_refused_with_their_reply_code(impl: Implementation, name: str, cut: str) -> None:
    case, key = CASES[name]
    decoder = decoder_for(impl, case)
    values, error = drain(decoder, CUTS[cut](bytes.fromhex(case[key])))
    assert error is not None
    if case["amqp_code"] is None:
        assert error.fatal
    else:
        assert error.reply_code in (case["amqp_code"], *case.get("also", ()))
    assert len(values) == (0 if case["layer"] == "assembly" else frames_before(case, key))
    assert error.offset <= 8 + len(case[key]) // 2
    # Nothing of a fast path that declined before.
    assert error.__suppress_context__ or error.__context__ is None


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", BY_EXPECTATION["error"])
def test_nothing_comes_after_a_fault(impl: Implementation, name: str, cut: str) -> None:
    case, key = CASES[name]
    decoder = decoder_for(impl, case)
    _, error = drain(decoder, CUTS[cut](bytes.fromhex(case[key])))
    for _ in range(3):
        values, again = drain(decoder, [impl.dialect(DIALECTS[case["dialect"]]).encode_heartbeat()])
        assert values == []
        assert isinstance(again, DecodeError)
        assert str(again) == str(error)
    decoder.reset()
    values, error = drain(decoder, [impl.dialect(DIALECTS[case["dialect"]]).encode_heartbeat()])
    assert (len(values), error) == (1, None)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", BY_EXPECTATION["need-more"])
def test_incomplete_input_is_waited_for(impl: Implementation, name: str, cut: str) -> None:
    case, key = CASES[name]
    decoder = decoder_for(impl, case)
    data = bytes.fromhex(case[key])
    assert drain(decoder, CUTS[cut](data)) == ([], None)
    assert decoder.pending == len(data)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", BY_EXPECTATION["ok"])
def test_what_only_looks_hostile_decodes(impl: Implementation, name: str, cut: str) -> None:
    case, key = CASES[name]
    decoder = decoder_for(impl, case)
    values, error = drain(decoder, CUTS[cut](bytes.fromhex(case[key])))
    assert error is None
    assert values
    assert decoder.pending == 0


@pytest.mark.parametrize("name", CASES)
def test_both_builds_agree_however_the_octets_are_cut(
    both: tuple[Implementation, Implementation], name: str
) -> None:
    case, key = CASES[name]
    data = bytes.fromhex(case[key])
    first, *others = [
        decoding(decoder_for(impl, case), chunks)[:2]
        for impl in both
        for chunks in ([data], octet_by_octet(data), [data[:9], data[9:]])
    ]
    for other in others:
        assert other == first
