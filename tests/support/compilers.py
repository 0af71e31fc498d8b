"""Compilers for modules whose speed is of no matter."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


def fast_compiler(folder: Path, pattern: str = "*") -> Path:
    """A compiler that does without optimising, which takes most of the time.

    Args:
        folder: where to write it.
        pattern: of the shell, for the arguments that it takes; it fails for others.
    """
    real = shutil.which("cc")
    if real is None:
        pytest.skip("there is no C compiler")
    path = folder / "some-cc"
    # Flags of the environment would come before those of the package.
    path.write_text(
        f'#!/bin/sh\ncase "$*" in {pattern}) exec {real} "$@" -O0;; esac\nexit 1\n', encoding="utf-8"
    )
    path.chmod(0o755)
    return path
