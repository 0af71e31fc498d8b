"""The documents of the project, and the blocks of code in them, to be run."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BROKER_URL = "amqp://guest:guest@localhost/"  # where programs of the documents look for a broker
CAPTURE = ROOT / "examples" / "real-bunny.pcap"
_CAPTURES = re.compile(r"""["' ]((?:[\w.-]+/)?[\w.-]+\.pcap(?:ng)?\d*)["'\s]""")


@dataclass
class Example:
    """A block of a language, and what it prints if the block after it is text."""

    line: int
    code: str
    printed: str | None

    def beside(self, url: str) -> Example:
        """The same, looking for the broker at another URL."""
        return replace(self, code=self.code.replace(BROKER_URL, url))


def examples(document: Path, language: str = "python") -> list[Example]:
    """The blocks of a language in a document, in order."""
    text = document.read_text(encoding="utf-8")
    blocks = list(FENCE.finditer(text))
    found = []
    for block, after in zip_longest(blocks, blocks[1:]):
        if block[1] == language:
            printed = after[2] if after is not None and after[1] == "text" else None
            line = text.count("\n", 0, block.start()) + 1
            found.append(Example(line, block[2], printed))
    return found


def make_captures(folder: Path, blocks: Iterable[Example]) -> None:
    """Put a capture wherever blocks name one."""
    for name in {name for block in blocks for name in _CAPTURES.findall(block.code)}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CAPTURE, folder / name)


def run_page(document: Path, names: dict[str, Any], url: str = BROKER_URL) -> None:
    """Run the Python of a page, block after block in one namespace, and compare what the blocks print.

    Args:
        document: the page.
        names: what its blocks use and do not define.
        url: where there is a broker.
    """
    for block in (example.beside(url) for example in examples(document)):
        code = compile("\n" * block.line + block.code, str(document), "exec", dont_inherit=True)
        with redirect_stdout(io.StringIO()) as out:
            exec(code, names)
        if block.printed is not None:
            assert out.getvalue() == block.printed
