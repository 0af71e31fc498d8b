"""Every key of the summary is documented, with its unit where it is a number."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import make_capture as make
from support.busy import busy

from amqpcodec import stats
from amqpcodec.stats import units

ROOT = Path(__file__).parents[2]
_OF_KINDS = ("rates.messages", "rates.octets")  # objects by kind, whose keys are data


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("captures") / "lossy.pcap"
    path.write_bytes(make.pcap(make.disturb(busy(7).packets, 3, loss=0.05)[0]))
    collector = stats.Collector()
    for file in (path, *sorted((ROOT / "examples").glob("*.pcap"))):
        collector.add(file, file.name)
    shown: dict[str, Any] = json.loads(json.dumps(collector.summary().as_dict()))
    return shown


def _keys(value: Any, above: str) -> Iterator[tuple[str, Any]]:
    """The keys of objects, as they are documented, and what they hold."""
    if isinstance(value, list):
        for each in value:
            yield from _keys(each, above)
    elif isinstance(value, dict):
        for name, inner in value.items():
            key = f"{above}.{name}" if f"{above}.{name}" in units.KEYS else name
            yield key, inner
            if key not in (*_OF_KINDS, "units"):
                yield from _keys(inner, name)


def _is_number(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value) and all(map(_is_number, value.values()))
    if isinstance(value, list):
        return bool(value) and all(map(_is_number, value))
    return isinstance(value, int)


def test_every_key_is_documented_and_every_documented_key_exists(summary: dict[str, Any]) -> None:
    found = {key for key, _ in _keys(summary, "")}
    assert found | {"consumer_tag"} == units.KEYS.keys()  # which no method before these errors has


def test_every_number_has_a_unit(summary: dict[str, Any]) -> None:
    rankings = {key for key, value in summary.items() if isinstance(value, dict)}
    sums = {"others", "uncounted", "over_time", *rankings}
    bare = {key for key, value in _keys(summary, "") if _is_number(value) and not units.KEYS[key][0]}
    assert bare <= sums
    assert summary["units"] == {key: unit for key, (unit, _) in units.KEYS.items() if unit}


def test_the_documentation_has_the_table_of_keys() -> None:
    assert units.table() in (ROOT / "docs" / "stats.md").read_text(encoding="utf-8")
