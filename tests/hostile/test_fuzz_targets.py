"""The fuzz targets hold for every seed and for what fuzzing found; atheris is not needed for that."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.campaign import share
from support.failures import Failures
from support.implementation import wanted
from support.tiers import few

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
sys.path.insert(0, str(FUZZ))

if "c" not in wanted():
    pytest.skip("the targets compare the builds", allow_module_level=True)

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("fcntl", reason="fuzzing is for Linux and macOS")

import campaign  # noqa: E402
import dictionaries  # noqa: E402
import promises  # noqa: E402
import seeds  # noqa: E402
import targets  # noqa: E402


def test_the_targets_are_those_that_campaigns_run() -> None:
    assert tuple(targets.TARGETS) == campaign.TARGETS
    assert {path.name for path in seeds.REGRESSIONS.iterdir() if path.is_dir()} <= set(targets.TARGETS)


@pytest.mark.slow("of the fuzzing campaign alone")
@pytest.mark.parametrize("content", ["sleep", "spin", "fail"])
def test_an_input_that_took_long_counts_only_if_it_does_by_itself(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import sys, time; kind = open(sys.argv[3]).read(); time.sleep(2 * (kind == 'sleep'))\n"
    program += "while kind == 'spin': pass\nsys.exit(kind == 'fail')\n"
    (tmp_path / "fuzz").mkdir()
    (tmp_path / "fuzz" / "run.py").write_text(program, encoding="utf-8")
    for name, value in (("ROOT", tmp_path), ("BASE", tmp_path), ("SLOW", 1)):
        monkeypatch.setattr(campaign, name, value)
    path = tmp_path / "timeout-1234"
    path.write_text(content, encoding="utf-8")
    assert campaign._was_only_busy("stream", path, dict(os.environ)) is (content == "sleep")
    assert (path in campaign.findings(tmp_path)) is (content != "sleep")


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of results of a campaign that has just begun."""
    monkeypatch.setattr(campaign, "BASE", tmp_path)
    monkeypatch.setattr(campaign, "RESULTS", tmp_path / "results.json")
    return tmp_path / "results.json"


FIGURES = {"seconds": 7, "executions": 100, "findings": 1, "edges": 3, "features": 4, "corpus": 2, "seeds": 5}


def test_campaigns_at_the_same_time_keep_the_rows_of_each_other(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = json.loads

    def slowly(text: str) -> Any:
        time.sleep(0.01)  # for another to come between
        return load(text)

    monkeypatch.setattr(campaign.json, "loads", slowly)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda target: campaign.keep(target, FIGURES), campaign.TARGETS))
    assert sorted(load(results.read_text(encoding="utf-8"))) == sorted(campaign.TARGETS)


def test_a_campaign_goes_on_with_the_target_that_has_had_the_least_time(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def run(target: str, seconds: int, environment: dict[str, str]) -> dict[str, Any]:
        ran.append(target)
        return FIGURES | {"seconds": 20 if target == "stream" else 9, "edges": 10 + len(ran)}

    monkeypatch.setattr(campaign, "run", run)
    wanted = ("stream", "tables")
    assert campaign.go_on(wanted, 250, 60, {}) == 3
    assert ran == ["stream", "tables", "tables"]
    assert campaign.go_on(wanted, 300, 60, {}) == 0  # there have been so many
    assert campaign.go_on(wanted, 301, 60, {}) == 1
    assert ran[3:] == ["tables"]
    [stream, tables] = json.loads(results.read_text(encoding="utf-8")).values()
    assert (stream["executions"], stream["seconds"], stream["edges"]) == (100, 20, 11)
    assert (tables["executions"], tables["seconds"], tables["edges"]) == (300, 27, 14)


def test_executions_are_those_beyond_seeds_and_corpus() -> None:
    figures = {"executions": 0}
    read = "#472\tINITED cov: 5386 ft: 16860 corp: 289/27Kb exec/s: 157 rss: 523Mb\n"
    campaign._count(figures, read + "#500\tNEW    cov: 5400 ft: 17000 corp: 290/27Kb lim: 4 exec/s: 9\n")
    assert figures == {"executions": 28, "edges": 5400, "features": 17000, "corpus": 290}
    unread: dict[str, int] = {}
    campaign._count(unread, "#400\tpulse  cov: 17 ft: 9 corp: 2/1Kb exec/s: 157\n")  # ended while it read
    assert unread == {}
    campaign._count(figures, read + "stat::number_of_executed_units: 1472\n")
    assert figures == {"executions": 1028, "edges": 5386, "features": 16860, "corpus": 289}


@pytest.mark.slow("of the fuzzing campaign alone")
def test_seeds_and_dictionaries_are_written_as_libfuzzer_reads_them(tmp_path: Path) -> None:
    for target in campaign.TARGETS:
        seeds.write(tmp_path, target)
        for path in (tmp_path / target).iterdir():
            assert path.name == hashlib.sha1(path.read_bytes()).hexdigest()
        dictionary = tmp_path / f"{target}.dict"
        assert dictionary.exists() == (target not in dictionaries.WITHOUT)
        for line in dictionary.read_text(encoding="ascii").splitlines() if dictionary.exists() else ():
            assert re.fullmatch(r'\w+="(\\x[0-9a-f]{2})+"', line, re.ASCII), line


def test_a_dictionary_has_what_the_specifications_and_formats_have() -> None:
    words = dictionaries.words("session")
    assert {"queue.declare", "header-rabbitmq-0-9-1", "tag-F", "pcap-0", "pcapng-section"} <= set(words)
    assert words["queue.declare"] == b"\0\x32\0\x0a"
    assert not {"pcap-0", "port"} & set(dictionaries.words("stream"))


def test_what_a_program_took_is_time_of_the_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "BASE", tmp_path)
    program = "import time; time.sleep(0.5); print('done'); raise SystemExit(3)"
    ended, text, seconds = campaign.measured([sys.executable, "-c", program], dict(os.environ))
    assert (ended, text) == (3, "done\n")
    assert seconds < 0.45


@pytest.mark.parametrize("target", few(targets.TARGETS, 3, "further targets of the fuzzer"))
def test_seeds(target: str) -> None:
    failures = Failures()
    for octets in seeds.seeds(target):
        with failures.case(octets[:40].hex()):
            targets.TARGETS[target](octets)
    failures.check(at_least=10)


@pytest.mark.parametrize("target", few(targets.TARGETS, 3, "further targets of the fuzzer"))
def test_damaged_seeds(target: str) -> None:
    numbers = random.Random(4)
    corpus = seeds.seeds(target)
    failures = Failures()
    for _ in range(share(50)):
        octets = bytearray(numbers.choice(corpus))
        for _ in range(numbers.randint(1, 4)):
            octets[numbers.randrange(len(octets))] = numbers.choice(
                (0, 1, 127, 128, 255, numbers.randrange(256))
            )
        with failures.case(bytes(octets[:60]).hex()):
            targets.TARGETS[target](bytes(octets))
    failures.check(at_least=40)


def test_a_broken_promise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The targets would see it: octets that one build writes otherwise than the other."""
    compiled, pure = targets.modules("rabbitmq-0-9-1")
    monkeypatch.setattr(targets, "modules", lambda dialect: (compiled, Other(pure)))
    streams = [b"\4" + octets[1:] for octets in seeds.seeds("stream")]
    with pytest.raises(promises.BrokenPromiseError):
        list(map(targets.stream, streams))


class Other:
    """A dialect's module whose frame decoders have another limit than they were given."""

    def __init__(self, module: object) -> None:
        self.module = module

    def __getattr__(self, name: str) -> object:
        if name == "FrameDecoder":
            return lambda **options: self.module.FrameDecoder(**options | {"frame_max": 4095})
        return getattr(self.module, name)
