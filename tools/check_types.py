#!/usr/bin/env python3
"""Compares the types that users see with what each build is at run time, by mypy's stubtest.

    python tools/check_types.py [c] [py]

Type checkers read the texts of the pure build. In the compiled build, Cython has made classes and functions
of these texts. For it, each text `X_py.py` is laid out as the types of `X_c`, and stubtest imports the
compiled module beside them. The files in tools/types list what may differ, and why; an entry that is no
longer needed is an error, too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
ALLOWED = {
    build: [ROOT / "tools" / "types" / f"{name}.allow" for name in names]
    for build, names in {"c": ("both", "c"), "py": ("both",)}.items()
}
SETTINGS = """[mypy]
mypy_path = {view}
cache_dir = {cache}
ignore_missing_imports = true
[mypy-pyspark.*,pandas.*,numpy.*,polars.*]
follow_imports = skip
"""


def lay_out(build: str, folder: Path) -> None:
    """Write the package as type checkers are to see one build.

    Args:
        build: ``"c"`` or ``"py"``.
        folder: where to; what is there already and equal is left alone.
    """
    pure = (path for path in SOURCE.rglob("*_py.py") if path.with_name(f"{path.stem[:-3]}_c.pxd").exists())
    twins = {path.stem[:-3] for path in pure} if build == "c" else set()
    name = re.compile(rf"\b({'|'.join(sorted(twins)) or '(?!)'})_py\b")
    kept = set()
    for path in (SOURCE / "amqpcodec").rglob("*.py"):
        target = folder / name.sub(r"\1_c", path.relative_to(SOURCE).as_posix())
        text = name.sub(r"\1_c", path.read_text(encoding="utf-8"))
        kept.add(target)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    for path in folder.rglob("*.py"):
        if path not in kept:
            path.unlink()


def disagreements(build: str) -> str:
    """Return the complaints of stubtest about a build that are not allowed; empty if types are right."""
    folder = ROOT / "build" / "types" / build
    lay_out(build, folder)
    settings = folder / "mypy.ini"
    settings.write_text(SETTINGS.format(view=folder, cache=folder / "cache"), encoding="utf-8")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy.stubtest", "--concise", "--ignore-positional-only"),
            *("--ignore-disjoint-bases", "--mypy-config-file", str(settings)),
            *(f"--allowlist={path}" for path in ALLOWED[build]), "amqpcodec",
        ],
        env=os.environ | {"AMQPCODEC_IMPL": build, "PYTHONPATH": str(SOURCE)},
        cwd=folder.parent, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    return done.stdout + done.stderr if done.returncode else ""


def main(builds: list[str]) -> int:
    """Compare, and show what differs."""
    failed = 0
    for build in builds or ALLOWED:
        found = disagreements(build)
        print(found or f"The types agree with the {build} build.", flush=True)
        failed |= bool(found)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
