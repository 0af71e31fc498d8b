"""``python -m interop [ARGUMENTS OF PYTEST]``: run what meets peers of others, and print the tables.

The exit code is 1 if a test has failed, or if docs/interoperability.md has other tables. Where a program is
missing, its rows are left out of the comparison, with the reason.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parents[1] / "docs" / "interoperability.md"
# Of this package, which an installation from a checkout lists among the modules of the plugin of pytest.
IMPORTED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
HEAD = "| dialect | peer | we are | tests |\n| --- | --- | --- | --- |"


class Results:
    """Collects what was run, by dialect, peer and role."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once, by its call; a failure of its set-up or its end as well."""
        noted = dict(report.user_properties)
        if "peer" in noted and (report.when == "call" or report.failed):
            self.counts[str(noted["dialect"]), str(noted["peer"]), str(noted["role"])][report.outcome] += 1

    def rows(self) -> list[str]:
        """Return a row for each dialect and peer."""
        rows = []
        for key, counts in sorted(self.counts.items(), key=lambda entry: (entry[0][1], entry[0][0])):
            numbers = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
            rows.append(f"| {' | '.join(key)} | {numbers} |")
        return rows


def main(arguments: list[str]) -> int:
    """Run them; the exit code."""
    results = Results()
    options = ["-m", "interop", "-q", "--no-header", "-W", IMPORTED]
    code = pytest.main([*options, *(arguments or [str(FOLDER)])], plugins=[results])
    from .differences import table  # now: pytest is the first to import this package

    rows = results.rows()
    print("", HEAD, *rows, "", table(), "", sep="\n")
    said = PAGE.read_text(encoding="utf-8").splitlines()
    others = [line for line in (*rows, *table().splitlines()) if line not in said]
    if others:
        print("docs/interoperability.md does not say:", *others, sep="\n")
    return int(bool(code or others))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
