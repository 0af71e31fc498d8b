"""A package for a specification of one's own: it works, and compiled it does the same as its text."""

from __future__ import annotations

import keyword
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_spec import BUILTINS, HARD_KEYWORDS, OUR_OWN, PROPERTY_TYPES, SOFT_KEYWORDS
from support.implementation import wanted

Outcomes = dict[str, Any]
METHODS = (
    "match.import", "match.none", "match.case", "match.c", "method.bits", "method.word", "method.rich",
    "method.empty", "method.octets",
)  # fmt: skip
BUILDS = ["pure_outcomes", pytest.param("compiled_outcomes", marks=pytest.mark.slow("compiles a package"))]


def test_every_method_and_property_comes_back_as_it_was(pure_outcomes: Outcomes) -> None:
    assert tuple(pure_outcomes["methods"]) == METHODS
    for found in (*pure_outcomes["methods"].values(), *pure_outcomes["properties"].values()):
        assert len(found["equal"]) >= 4
        assert all(found["equal"])


def test_the_pure_build_reads_the_text(pure_outcomes: Outcomes) -> None:
    assert (pure_outcomes["build"], pure_outcomes["module"]) == ("py", "own.methods_py")


@pytest.mark.slow("compiles a package")
def test_the_compiled_package_is_used_with_the_compiled_build(compiled_outcomes: Outcomes) -> None:
    assert (compiled_outcomes["build"], compiled_outcomes["module"]) == ("c", "own.methods_c")


@pytest.mark.slow("compiles a package")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("part", ["octets", "values", "shown", "damage", "refused", "valid"])
def test_compiled_methods_do_what_their_text_does(
    pure_outcomes: Outcomes, compiled_outcomes: Outcomes, method: str, part: str
) -> None:
    assert compiled_outcomes["methods"][method][part] == pure_outcomes["methods"][method][part]


@pytest.mark.slow("compiles a package")
@pytest.mark.parametrize("part", ["octets", "values", "shown", "damage", "refused", "by position"])
def test_compiled_properties_do_what_their_text_does(
    pure_outcomes: Outcomes, compiled_outcomes: Outcomes, part: str
) -> None:
    found, expected = compiled_outcomes["properties"], pure_outcomes["properties"]
    assert {name: each[part] for name, each in found.items()} == {
        name: each[part] for name, each in expected.items()
    }


@pytest.mark.slow("compiles a package")
@pytest.mark.parametrize("part", ["messages", "header", "constants", "attributes", "ids", "names"])
def test_the_compiled_package_is_the_same_otherwise(
    pure_outcomes: Outcomes, compiled_outcomes: Outcomes, part: str
) -> None:
    assert compiled_outcomes[part] == pure_outcomes[part]


def test_ids_reach_from_0_to_65535(pure_outcomes: Outcomes) -> None:
    assert pure_outcomes["ids"]["match.import"] == [65535, 65535]
    assert pure_outcomes["ids"]["match.case"] == [65535, 0]
    assert pure_outcomes["methods"]["match.import"]["octets"][0][14:22] == "ffffffff"
    assert pure_outcomes["methods"]["match.case"]["octets"][0][14:22] == "ffff0000"


def test_seventeen_bits_take_three_octets_and_those_behind_another_field_their_own(
    pure_outcomes: Outcomes,
) -> None:
    nothing, everything, numbers = pure_outcomes["methods"]["method.bits"]["octets"][:3]
    assert nothing == "01 0005 0000000d 0001 0001 000000 00 0000 0000 00 ce".replace(" ", "")
    assert everything == "01 0005 0000000d 0001 0001 ffff01 ff ff01 ffff 01 ce".replace(" ", "")
    assert numbers == "01 0005 0000000d 0001 0001 000000 01 0000 0102 00 ce".replace(" ", "")


def test_eight_bits_take_one_octet(pure_outcomes: Outcomes) -> None:
    nothing, everything, numbers = pure_outcomes["methods"]["method.octets"]["octets"][:3]
    assert nothing == "01 0005 00000007 0001 0005 00 00 00 ce".replace(" ", "")
    assert everything == "01 0005 00000007 0001 0005 ff ff ff ce".replace(" ", "")
    assert numbers == "01 0005 00000007 0001 0005 00 01 00 ce".replace(" ", "")


def test_a_reserved_property_is_given_by_name_only(pure_outcomes: Outcomes) -> None:
    positional, refusal = pure_outcomes["properties"]["match"]["by position"]
    assert positional == [f"p{number}" for number in range(30)]
    assert refusal == "TypeError"


def test_thirty_one_properties_take_three_words_of_flags_where_the_last_needs_it(
    pure_outcomes: Outcomes,
) -> None:
    flags = [octets[38:50] for octets in pure_outcomes["properties"]["match"]["octets"]]
    assert flags[0][:4] == "0000"
    # The second set has False for the bits p1, p10, p19 and p28, which is their being absent.
    assert flags[1:4] == ["ffffffff8000", "bfdff7fb8000", "aaab55558000"]
    alone = flags[4:]
    assert [each[:4] for each in alone[:15]] == [f"{0x8000 >> position:04x}" for position in range(15)]
    assert [each[:8] for each in alone[15:30]] == [f"0001{0x8000 >> position:04x}" for position in range(15)]
    assert alone[30] == "000100018000"


@pytest.mark.parametrize("build", BUILDS)
def test_of_properties_that_are_not_set_bits_are_false_and_others_none(
    build: str, request: pytest.FixtureRequest
) -> None:
    [name, values] = request.getfixturevalue(build)["properties"]["match"]["values"][0]
    assert (name, len(values)) == ("MatchProperties", 31)
    bits = {
        f"p{position}"
        for position, type_ in zip(range(31), PROPERTY_TYPES * 4, strict=False)
        if type_ == "bit"
    }
    assert dict(values) == {
        attribute: ["bool", "False"] if attribute in bits else ["NoneType", "None"] for attribute, _ in values
    }


def test_a_class_without_properties_carries_content_with_one_empty_word(pure_outcomes: Outcomes) -> None:
    header = "02 0005 0000000e 0001 0000 ffffffffffffffff 0000 ce".replace(" ", "")
    assert pure_outcomes["properties"]["method"]["octets"][0] == header
    assert set(pure_outcomes["messages"]) == {"match.import", "method.rich"}


def test_names_that_are_taken_get_an_underscore_and_others_none(pure_outcomes: Outcomes) -> None:
    attributes = pure_outcomes["attributes"]
    hard = [f"{name}_" if keyword.iskeyword(name) else name for name in HARD_KEYWORDS]
    assert attributes["match.import"] == hard
    assert attributes["match.none"] == [*SOFT_KEYWORDS, *BUILTINS]
    own = {"spec", "validate", "self", "ob-base"}
    assert attributes["match.case"] == [
        name.replace("-", "_") + ("_" if name in own else "") for name in OUR_OWN
    ]


def test_a_domain_of_a_domain_brings_the_asserts_of_both(pure_outcomes: Outcomes) -> None:
    valid = pure_outcomes["methods"]["method.word"]["valid"]
    assert [each[5] for each in valid[:2]] == ["text", "word"]
    assert valid[0][3] == "breaks the assert notnull"
    assert valid[1][3] == "breaks the assert length 8"
    assert valid[2][0] == "octets"


def test_every_truncation_is_refused_at_an_offset_inside_the_frame(pure_outcomes: Outcomes) -> None:
    for found in (*pure_outcomes["methods"].values(), *pure_outcomes["properties"].values()):
        for octets, damage in zip((found["octets"][0], found["octets"][2]), found["damage"], strict=True):
            size = len(octets) // 2
            # Every payload shorter than this one, and one that is an octet longer.
            assert len(damage) == size - 8 + 1
            for error, _ in damage:
                assert error[0] == "DecodeError"
                assert error[4] in (501, 502)
                assert 7 <= error[7] <= size


def test_errors_name_the_dialect_the_method_and_the_field(pure_outcomes: Outcomes) -> None:
    error = pure_outcomes["methods"]["method.rich"]["damage"][0][4][0]
    assert error[8:11] == ["own-1", "method.rich", "when"]
    refused = pure_outcomes["methods"]["method.rich"]["refused"]
    assert {each[2][0] for each in refused} == {"octets", "EncodeError"}
    assert {each[2][4] for each in refused if each[2][0] == "EncodeError"} == {"method.rich"}


@pytest.mark.filterwarnings("ignore:own.methods is not compiled")
def test_reply_codes_say_what_they_close(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(package))
    from own.reply_codes import REPLY_ERRORS  # type: ignore[import-not-found]

    facts = {code: (cls.__name__, cls.name, cls.closes) for code, cls in REPLY_ERRORS.items()}
    assert facts == {
        399: ("AmqpNotInStock", "not-in-stock", "channel"),
        599: ("AmqpOnFire", "on-fire", "connection"),
    }


@pytest.mark.parametrize("build", BUILDS)
def test_messages_are_those_of_amqpcodec(build: str, request: pytest.FixtureRequest) -> None:
    outcomes = request.getfixturevalue(build)
    assert [each["is ours"] for each in outcomes["messages"].values()] == [True, True]


def test_a_package_that_is_not_compiled_warns_that_it_brings_the_pure_build(
    package: Path, run: Callable[[str, Path], Outcomes]
) -> None:
    if "c" not in wanted():
        pytest.skip("there is no compiled amqpcodec for it to stand beside")
    beside_compiled = run("c", package)
    assert beside_compiled["module"] == "own.methods_py"
    assert beside_compiled["warnings"] == [
        "own.methods is not compiled: using its pure build beside the compiled amqpcodec"
    ]
    alone = run("py", package)
    assert alone["warnings"] == []
    assert [each["is ours"] for each in alone["messages"].values()] == [True, True]
