"""Build the wheel from source as releases are, in a fresh environment; store the seconds and the octets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "benchmarks" / "results" / "wheel.json"


def main() -> None:
    """Build from a copy of what git has, so that nothing built before helps."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    released = {**os.environ, **settings["linux"]["environment"]}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "source", Path(folder) / "wheel"
        archive = Path(folder) / "source.tar"
        subprocess.run(["git", "archive", "-o", str(archive), "HEAD"], cwd=ROOT, check=True)
        with tarfile.open(archive) as tar:
            tar.extractall(source, filter="data")
        begin = perf_counter()
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "-q",
            "--no-deps",
            "--no-cache-dir",
            "-w",
            str(target),
        ]
        subprocess.run([*command, str(source)], env=released, check=True)
        seconds = perf_counter() - begin
        size = next(target.glob("*.whl")).stat().st_size
    figures = {"seconds": seconds, "octets": size, "cores": os.cpu_count()}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"wheel of {size} octets, built in {seconds:.0f} s on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
