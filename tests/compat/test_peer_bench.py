"""The benchmark for maintainers: a checkout of their library, as it is and accelerated, without a broker."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.compat.seam import seamed
from support.marks import replaces

from amqpcodec.compat import bench
from amqpcodec.compat.bench import LIBRARIES


def command(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "amqpcodec.compat.bench", "--peer", str(path), "--rounds", "3", *options],
        capture_output=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.slow("times libraries")
@replaces
@pytest.mark.parametrize("library", LIBRARIES)
def test_both_states_of_a_library_are_timed_and_versions_and_machine_named(library: str) -> None:
    pytest.importorskip(library)
    spec = find_spec(library)
    assert spec is not None
    folder = Path(str(spec.origin)).parent
    done = command(folder, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["path"] == str(folder)
    assert {library, LIBRARIES[library], "amqpcodec"} == found["versions"].keys()
    assert found["machine"]["cores"] > 0
    assert found["machine"]["python_version"] == sys.version.split()[0]
    for times in found["works"].values():
        assert times["own"] > times["accelerated"] > 0
        assert times["ratio"] > 1.5


@pytest.mark.slow("times libraries")
@replaces
def test_a_checkout_that_has_the_seam_is_timed_without_it_as_well(tmp_path: Path) -> None:
    pytest.importorskip("pika")
    done = command(seamed("pika", tmp_path))
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}/pika: pika " in done.stdout
    assert "read   own" in done.stdout


@replaces
@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_timed_gives_the_same_in_both_states(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library)
    monkeypatch.setattr(bench, "_ROUND", 0)
    works = bench.measured(library, 1)["works"]
    assert works.keys() == {"read", "write"}
    assert all(times["own"] > 0 and times["accelerated"] > 0 for times in works.values())


def test_a_folder_without_any_of_the_libraries_is_refused(tmp_path: Path) -> None:
    done = command(tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"{tmp_path}: none of pamqp, aiormq, pika, amqp is in there\n"
