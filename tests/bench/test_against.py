"""`make bench-against`: what it measures, and what it makes of pairs of processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support.benchmark_modules import module
from support.implementation import wanted

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "real-bunny.pcap"

compiled_only = pytest.mark.skipif("c" not in wanted(), reason="the compiled build is not measured")


@pytest.fixture
def against() -> Iterator[ModuleType]:
    yield from module("against")


def said(nanoseconds: float, found: int = 7) -> dict[str, float]:
    return {"seconds": nanoseconds / 1e9, "found": found}


LACKS = {"lacks": "AttributeError: no such function"}


def test_a_ratio_is_the_median_of_the_pairs(against: ModuleType) -> None:
    pairs = [{"decode": (said(100), said(now))} for now in (80, 50, 90)]
    [ratio], notes = against.ratios(pairs)
    assert notes == []
    assert ratio.cells() == ("decode", "100 ns", "80 ns", "0.80", "0.50 to 0.90", "0.50", "")


def test_the_fastest_processes_are_compared_whatever_their_pairs(against: ModuleType) -> None:
    pairs = [{"decode": (said(base), said(now))} for base, now in ((100, 90), (200, 60), (300, 300))]
    [ratio], _ = against.ratios(pairs)
    assert ratio.fastest == 0.6


@pytest.mark.parametrize(("now", "slower"), [(109, False), (111, True)])
def test_an_item_that_is_slower_by_more_than_the_margin_is_named(
    against: ModuleType, now: int, slower: bool
) -> None:
    found, notes = against.ratios([{"decode": (said(100), said(now))}])
    assert found[0].is_slower() is slower
    text = against.report("0123456789abcdef", found, [], notes, "")
    assert "## Against 0123456789ab\n" in text
    assert ("**Slower: decode.**" in text) is slower
    assert ("Nothing is slower." in text) is not slower


def test_what_the_base_lacks_is_named_and_not_compared(against: ModuleType) -> None:
    pairs = [{"old": (said(100), said(100)), "new": (LACKS, said(50)), "gone": (LACKS, LACKS)}]
    found, notes = against.ratios(pairs)
    assert [ratio.item for ratio in found] == ["old"]
    assert notes == [
        "new: the base lacks it (AttributeError: no such function)",
        "gone: this checkout lacks it (AttributeError: no such function)",
    ]
    assert "- new: the base lacks it" in against.report("0" * 40, found, [], notes, "")


def test_what_the_base_lacks_is_a_share_of_what_it_has(against: ModuleType) -> None:
    pairs = [{"one by one": (said(100), said(90)), "at once": (LACKS, said(now))} for now in (50, 30, 40)]
    others = {"at once": "one by one", "one by one": "at once", "another": "one by one"}
    [share] = against.shares(pairs, others)
    assert share.cells()[:-1] == (
        "at once, of: one by one",
        "100 ns",
        "40 ns",
        "0.40",
        "0.30 to 0.50",
        "0.30",
    )
    assert "at once, of: one by one | 100 ns" in against.report("0" * 40, [], [share], [], "")


def test_results_that_differ_are_named(against: ModuleType) -> None:
    _, notes = against.ratios([{"decode": (said(100, 7), said(100, 8))}])
    assert notes == ["decode: the results differ"]


def test_a_revision_that_there_is_not_ends_in_a_line(against: ModuleType) -> None:
    with pytest.raises(SystemExit, match="bench-against: git rev-parse: "):
        against.commit_of("no-such-revision")


def test_a_revision_is_compiled_once(
    against: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(against, "FOLDER", tmp_path)
    monkeypatch.setattr(against.subprocess, "run", None)  # nothing is run
    folder = tmp_path / "0123456789ab"
    folder.mkdir()
    (folder / "compiled").touch()
    assert against.compiled("0123456789abcdef") == folder


@compiled_only
def test_an_environment_imports_its_own_sources(
    against: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(against, "FOLDER", tmp_path)
    assert against.environment("now", ROOT / "src") == tmp_path / "now-environment" / "bin" / "python"
    with pytest.raises(SystemExit, match="holds no compiled amqpcodec"):
        against.environment("base", tmp_path)


@compiled_only
def test_a_process_answers_for_each_item(against: ModuleType) -> None:
    process = against.Process(Path(sys.executable))
    try:
        for item in ("make and encode acks", "pure messages, numbered"):
            answer = process.ask(item)
            assert answer["seconds"] > 0, answer
            assert answer["found"] > 0
    finally:
        process.close()


@compiled_only
def test_every_item_is_there_and_finds_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    for works in module("works"):
        monkeypatch.setattr(works, "COUNT", 8)
        monkeypatch.setattr(works, "PURE_COUNT", 4)
        monkeypatch.setattr(works, "capture", lambda *_: (EXAMPLE, {}))
        items = works.items()
        found = {}
        for name, item in items.items():
            call = item.make()
            found[name] = call()
            assert call() == found[name] > 0, name
        for name, item in items.items():
            if item.share_of and not name.startswith("pure messages"):  # which are fewer than their frames
                assert found[name] == found[item.share_of], name


def test_traced_deliveries_have_602_octets_and_all_differ() -> None:
    for corpus in module("corpus"):
        contents = corpus.traced(20)
        streams = {corpus.delivery_stream([content]) for content in contents}
        assert [len(stream) for stream in streams] == [602] * 20
        assert all(list(content.headers) == list(contents[0].headers) for content in contents)
        for differing in ("delivery_tag", "message_id", "correlation_id", "routing_key", "seconds", "body"):
            assert len({getattr(content, differing) for content in contents}) == 20, differing
        assert {len(corpus.delivery_stream([content])) for content in corpus.renumbered(20)} == {602}
