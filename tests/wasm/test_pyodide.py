"""The pure build under pyodide: CPython on a 32-bit machine (WebAssembly), here hosted by Node.

pyodide comes from npm, into .cache/pyodide, the first time; where it cannot be had, these tests skip.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.implementation import wanted
from support.vectors import load

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VERSION = "314.0.7"
CACHE = ROOT / ".cache" / "pyodide"
MODULE = CACHE / "node_modules" / "pyodide" / "pyodide.mjs"
SCRIPT = HERE / "outcomes_of_vectors.py"
pytestmark = pytest.mark.slow("starts another interpreter")


def install() -> None:
    """Have npm fetch pyodide once; skip with the reason if that does not go."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("node and npm are needed")
    if MODULE.is_file():
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    options = ("--no-save", "--no-audit", "--no-fund", "--prefix", str(CACHE))
    try:
        subprocess.run(
            ["npm", "install", *options, f"pyodide@{VERSION}"], check=True, capture_output=True, timeout=120
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"pyodide cannot be fetched with npm: {(error.stderr or b'')[-200:]!r}")


@pytest.fixture(scope="module")
def wasm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the pure build did under pyodide."""
    install()
    folder = tmp_path_factory.mktemp("wasm")
    # Only what the pure build consists of: no compiled module could be mistaken for it.
    skip = shutil.ignore_patterns("*.so", "*.pyd", "*.pyx", "*.pxd", "__pycache__")
    shutil.copytree(ROOT / "src" / "amqpcodec", folder / "amqpcodec", ignore=skip)
    for name in ("support", "data"):
        shutil.copytree(ROOT / "tests" / name, folder / "tests" / name, ignore=skip)
    shutil.copy(SCRIPT, folder)
    command = ["node", str(HERE / "run_python.mjs"), str(MODULE), str(folder), SCRIPT.name]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module", params=wanted())
def here(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What each build does on this interpreter."""
    found: dict[str, Any] = json.loads(json.dumps(script().everything(request.param)))
    return found


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(SCRIPT.stem, SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_a_32_bit_interpreter_with_the_pure_build(wasm: dict[str, Any]) -> None:
    assert (wasm["platform"], wasm["pointer bits"], wasm["build in use"]) == ("emscripten", 32, "py")


def test_every_vector_was_run(wasm: dict[str, Any]) -> None:
    bad = load("bad-inputs-public")
    assert len(wasm["golden"]) == len(load("vectors-public"))
    assert len(wasm["malformed"]) == len(bad) + sum("hex_s2c" in case for case in bad)


@pytest.mark.parametrize("part", ["golden", "malformed", "wide"])
def test_outcomes_are_those_of_this_interpreter(
    wasm: dict[str, Any], here: dict[str, Any], part: str
) -> None:
    assert wasm[part].keys() == here[part].keys()
    differing = {name: (found, here[part][name]) for name, found in wasm[part].items()}
    assert [f"{name}: {a} not {b}" for name, (a, b) in differing.items() if a != b] == []


def test_frames_come_back_octet_by_octet(wasm: dict[str, Any]) -> None:
    assert wasm["changed"] == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("integer 9223372036854775807", "('int', '9223372036854775807')"),
        ("integer -9223372036854775808", "('int', '-9223372036854775808')"),
        ("plain integer 4294967296", "('int', '4294967296')"),
        ("time 253402300800", "('int', '253402300800')"),
        ("property 18446744073709551615", "('int', '18446744073709551615')"),
        ("last moment", "datetime.datetime(9999, 12, 31, 23, 59, 59"),
        ("delivery tag 18446744073709551615", r"P\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xce"),
        ("body size 18446744073709551615", r"\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\x00\\xce"),
        ("table of 4294967295 octets", "DecodeError"),
        ("frame of 4294967295 octets, limit 131072", "frame of 4294967303 octets"),
    ],
)
def test_wide_numbers_are_whole(wasm: dict[str, Any], name: str, shown: str) -> None:
    assert shown in wasm["wide"][name]
