"""Hypothesis strategies for values of the wire, derived from the facts files.

Values are written the way of the golden vectors, see `support.vectors`.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from . import oracle


def unsigned(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, 2**bits - 1)


def signed(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def normal(octets: bytes) -> Any:
    return oracle.text_of(octets)


SHORT_TEXT = st.one_of(st.text(max_size=20), st.just("x" * 255), st.binary(max_size=20).map(normal)).filter(
    lambda value: len(oracle.raw(value)) <= 255
)
LONG_TEXT = st.one_of(st.text(max_size=30), st.binary(max_size=30)).map(
    lambda value: normal(value.encode() if isinstance(value, str) else value)
)
ARGUMENTS: dict[str, st.SearchStrategy[Any]] = {
    "bit": st.booleans(),
    "octet": unsigned(8),
    "short": unsigned(16),
    "long": unsigned(32),
    "longlong": unsigned(64),
    "timestamp": st.one_of(unsigned(32), unsigned(64), st.integers(253402300790, 253402300810)),
    "shortstr": SHORT_TEXT,
    "longstr": LONG_TEXT,
    "content": st.one_of(
        LONG_TEXT.map(lambda octets: {"inline": octets}), LONG_TEXT.map(lambda octets: {"reference": octets})
    ),
}
SIZE_AND_WEIGHT = st.tuples(unsigned(64), unsigned(16))


def real(width: int) -> st.SearchStrategy[Any]:
    return st.floats(allow_nan=False, allow_infinity=False, width=width)  # which every profile carries


TAGGED: dict[str, st.SearchStrategy[Any]] = {
    "t": st.booleans(),
    "b": signed(8),
    "B": unsigned(8),
    "U": signed(16),
    "u": unsigned(16),
    "I": signed(32),
    "i": unsigned(32),
    "L": signed(64),
    "f": real(32),
    "d": real(64),
    "D": st.fixed_dictionaries({"scale": unsigned(8), "value": signed(32)}),
    "S": LONG_TEXT,
    "c": LONG_TEXT,
    "C": LONG_TEXT,
    "k": st.binary(min_size=1, max_size=1).map(normal),
    "x": st.binary(max_size=30).map(lambda octets: {"hex": octets.hex()}),
    "T": ARGUMENTS["timestamp"],
    "V": st.none(),
}
BY_PROFILE = {"s": (signed(16), SHORT_TEXT), "l": (signed(64), unsigned(64))}
WITHOUT = {"wg-0-9-1": "x", "rabbitmq": "cCkU", "0-9": "", "0-8": "V", "qpid": "LU"}


def tags_of(dialect: str, profile: str) -> list[str]:
    """The tags that the dialect's facts list, less what the profile cannot write."""
    return [tag for tag in oracle.facts(dialect)["field_table_tags"] if tag not in WITHOUT[profile]]


def tables(dialect: str, profile: str) -> st.SearchStrategy[list[Any]]:
    """Field tables with every tag the dialect has, nested a few levels deep."""
    tags = tags_of(dialect, profile)
    scalars = [
        st.tuples(st.just(tag), TAGGED[tag] if tag in TAGGED else BY_PROFILE[tag][profile == "wg-0-9-1"])
        for tag in tags
        if tag not in "AF"
    ]

    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        branches = [st.tuples(st.just("F"), _entries(inner))]
        if "A" in tags:
            branches.append(st.tuples(st.just("A"), st.lists(inner.map(list), max_size=3)))
        return st.one_of(branches)

    return _entries(st.recursive(st.one_of(scalars), nested, max_leaves=6))


def _entries(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    pairs = st.lists(st.tuples(SHORT_TEXT, values), max_size=4, unique_by=lambda pair: oracle.raw(pair[0]))
    return pairs.map(lambda entries: [[key, tag, value] for key, (tag, value) in entries])


def arguments(dialect: str, profile: str, wire_type: str) -> st.SearchStrategy[Any]:
    return tables(dialect, profile) if wire_type == "table" else ARGUMENTS[wire_type]


def methods(dialect: str, profile: str, class_name: str) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    """Values for every method of a class at once: method name to field name to value."""
    return st.fixed_dictionaries(
        {
            name: st.fixed_dictionaries(
                {field["name"]: arguments(dialect, profile, field["type"]) for field in method["fields"]}
            )
            for name, (group, method) in oracle.methods(dialect).items()
            if group["name"] == class_name
        }
    )


def properties(dialect: str, profile: str, class_name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the properties of a class, by name."""
    return st.fixed_dictionaries(
        {},
        optional={
            field["name"]: arguments(dialect, profile, field["type"])
            for field in oracle.contents(dialect)[class_name]["properties"]
        },
    )
