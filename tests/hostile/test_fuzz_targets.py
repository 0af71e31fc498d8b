"""The fuzz targets hold for every seed and for what fuzzing found; atheris is not needed for that."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.campaign import share
from support.failures import Failures
from support.implementation import wanted

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
sys.path.insert(0, str(FUZZ))

if "c" not in wanted():
    pytest.skip("the targets compare the builds", allow_module_level=True)

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import campaign  # noqa: E402
import promises  # noqa: E402
import seeds  # noqa: E402
import targets  # noqa: E402


def test_the_targets_are_those_that_campaigns_run() -> None:
    assert tuple(targets.TARGETS) == campaign.TARGETS
    assert {path.name for path in seeds.REGRESSIONS.iterdir() if path.is_dir()} <= set(targets.TARGETS)


@pytest.mark.parametrize("content", ["sleep", "spin", "fail"])
def test_an_input_that_took_long_counts_only_if_it_does_by_itself(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import sys, time; kind = open(sys.argv[3]).read(); time.sleep(2 * (kind == 'sleep'))\n"
    program += "while kind == 'spin': pass\nsys.exit(kind == 'fail')\n"
    (tmp_path / "fuzz").mkdir()
    (tmp_path / "fuzz" / "run.py").write_text(program)
    for name, value in (("ROOT", tmp_path), ("BASE", tmp_path), ("SLOW", 1)):
        monkeypatch.setattr(campaign, name, value)
    path = tmp_path / "timeout-1234"
    path.write_text(content)
    assert campaign._was_only_busy("stream", path, dict(os.environ)) is (content == "sleep")
    assert (path in campaign.findings(tmp_path)) is (content != "sleep")


def test_campaigns_at_the_same_time_keep_the_rows_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "BASE", tmp_path)
    path = tmp_path / "results.json"
    load = json.loads

    def slowly(text: str) -> Any:
        time.sleep(0.01)  # for another to come between
        return load(text)

    monkeypatch.setattr(campaign.json, "loads", slowly)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda target: campaign.keep(path, target, {"findings": 0}), campaign.TARGETS))
    assert sorted(load(path.read_text())) == sorted(campaign.TARGETS)


def test_what_a_program_took_is_time_of_the_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "BASE", tmp_path)
    program = "import time; time.sleep(1); print('done'); raise SystemExit(3)"
    ended, text, seconds = campaign.measured([sys.executable, "-c", program], dict(os.environ))
    assert (ended, text) == (3, "done\n")
    assert seconds < 0.9


@pytest.mark.parametrize("target", targets.TARGETS)
def test_seeds(target: str) -> None:
    failures = Failures()
    for octets in seeds.seeds(target):
        with failures.case(octets[:40].hex()):
            targets.TARGETS[target](octets)
    failures.check(at_least=10)


@pytest.mark.parametrize("target", targets.TARGETS)
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
