"""Searches of readers, and where each leads: looked up in the index as the pages do."""

from __future__ import annotations

from typing import Any

from lunr import lunr

SEARCHES = {
    "install": "start/install.html",
    "uninstall": "start/install.html",
    "publisher confirms": "client.html",
    "dead letter": "cookbook.html",
    "slow consumer": "cookbook.html",
    "unroutable": "cookbook.html",
    "reconnect": "client.html",
    "rpc": "cookbook.html",
    "channel closed": "cookbook.html",
    "prefetch": "client.html",
    "heartbeat": "cookbook.html",
    "wireshark": "capture.html",
    "parquet": "convert.html",
    "celery": "start/speed-up.html",
    "benchmark": "benchmarks.html",
    "property test": "tests.html",
}
"""Words, and a page that the first results must have."""
FIRST = 5


def lost(sections: list[dict[str, Any]]) -> list[str]:
    """Return the searches that do not lead to their page, a line each.

    Args:
        sections: of the search index: `location`, `title` and `text` of each.
    """
    titles = {"field_name": "title", "boost": 1000}
    index = lunr(ref="location", fields=(titles, "text"), documents=sections)
    wrong = []
    for words, page in SEARCHES.items():
        found = index.search(" ".join(f"+{word}" for word in words.split()))
        pages = list(dict.fromkeys(each["ref"].partition("#")[0] for each in found))[:FIRST]
        if page not in pages:
            wrong.append(f"a search for {words!r} leads to {', '.join(pages) or 'nothing'}, not to {page}")
    return wrong
