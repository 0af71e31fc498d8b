"""Releases of other libraries, fetched from the package index and kept under build/."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent.parent / "build" / "releases"


def fetched(library: str, version: str, *, whole: bool = False) -> Path:
    """A folder for the path of Python that has this release of a library, and nothing else.

    Args:
        library: as the package index calls it.
        version: of the release.
        whole: what it depends on is there as well.
    """
    folder = FOLDER / f"{library}-{version}{'-whole' * whole}"
    if folder.is_dir():
        return folder
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    partial.mkdir(parents=True)
    options = ["--quiet", "--no-compile", "--disable-pip-version-check", "--target", str(partial)]
    if not whole:
        options.append("--no-deps")
    command = [sys.executable, "-m", "pip", "install", *options, f"{library}=={version}"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    try:
        partial.rename(folder)
    except OSError:  # another process was quicker
        assert folder.is_dir()
    return folder
