"""The pages of the documentation that are generated: from `spec/`, the columns, the options and the examples.

`pages` returns them; `site` adds them to the site that `make docs` builds. None of them is stored.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from codecgen.load import load_project

from docs_pages import api, codes, columns, differences, examples, options, overview, protocol

ROOT = Path(__file__).resolve().parents[2]


@cache
def pages() -> dict[str, str]:
    """Every generated page: its Markdown, by its path in the site."""
    dialects = load_project(ROOT)
    return {
        "reference/protocol.md": overview.page(dialects),
        **{protocol.path(dialect): protocol.page(dialect, dialects) for dialect in dialects},
        "reference/differences.md": differences.page(dialects),
        "reference/reply-codes.md": codes.page(dialects),
        "reference/columns.md": columns.page(),
        "reference/options.md": options.page(),
        "examples.md": examples.page(ROOT),
        **api.pages(),
    }
