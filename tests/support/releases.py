"""Releases of other libraries, fetched from the package index and kept under build/."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent.parent / "build" / "releases"


def fetched(peer: str, version: str) -> Path:
    """A folder for the path of Python that has this release of a library, and nothing else."""
    folder = FOLDER / f"{peer}-{version}"
    if folder.is_dir():
        return folder
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    partial.mkdir(parents=True)
    options = (
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--disable-pip-version-check",
        "-d",
        str(partial),
    )
    command = [sys.executable, "-m", "pip", "download", *options, f"{peer}=={version}"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (wheel,) = partial.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(partial)
    wheel.unlink()
    try:
        partial.rename(folder)
    except OSError:  # another process was quicker
        assert folder.is_dir()
    return folder
