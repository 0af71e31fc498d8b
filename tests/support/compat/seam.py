"""Copies of libraries that use amqpcodec by the seam of `examples/seam.py`, as maintainers might."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

SEAM = Path(__file__).resolve().parents[3] / "examples" / "seam.py"
LINE = "from . import _speedups\n"


class Seam(NamedTuple):
    """Hold what a library puts into the constants of the seam."""

    peer: str
    loops: bool

    def text(self, library: str) -> str:
        """The seam as the library would have it."""
        text = SEAM.read_text(encoding="utf-8")
        for old, new in (
            ('PEER = "pika"', f"PEER = {self.peer!r}"),
            ("LOOPS = True", f"LOOPS = {self.loops}"),
            ('OFF = "PIKA_NO_SPEEDUPS"', f"OFF = {off(library)!r}"),
        ):
            assert old in text
            text = text.replace(old, new)
        return text


SEAMS = {
    "pamqp": Seam("pamqp", loops=False),
    "aiormq": Seam("pamqp", loops=False),
    "pika": Seam("pika", loops=True),
    "amqp": Seam("amqp", loops=False),
}


def off(library: str) -> str:
    """The variable that turns a seam off."""
    return f"{library.upper()}_NO_SPEEDUPS"


def seamed(library: str, folder: Path) -> Path:
    """Copy an installed library into a folder for the path of Python, with the seam; return the folder."""
    spec = find_spec(library)
    assert spec is not None, library
    copied = folder / library
    shutil.copytree(Path(str(spec.origin)).parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    put_into(copied)
    return folder


def put_into(package: Path) -> None:
    """Put the seam into the folder of a package."""
    (package / "_speedups.py").write_text(SEAMS[package.name].text(package.name), encoding="utf-8")
    with (package / "__init__.py").open("a", encoding="utf-8") as file:
        file.write(f"\n{LINE}")
