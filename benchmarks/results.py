"""The stored results, as the report and the chart read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from amqpcodec.bench.comparing import figures

FOLDER = Path(__file__).parent / "results"


class Results:
    """One stored run of `make bench`, and what the other targets of bench.mk have stored."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.run: dict[str, Any] = json.loads((folder / "bench.json").read_text())
        self.anchor: dict[str, Any] = _optional(folder / "anchor.json")
        self.budgets: dict[str, float] = _optional(folder / "budgets.json").get("figures", {})
        self.profile: dict[str, Any] = _optional(folder / "profile.json")
        self.columns: dict[str, Any] = _optional(folder / "columnar.json")
        self.captures: dict[str, Any] = _optional(folder / "columnar-captures.json")
        self.spark: dict[str, Any] = _optional(folder / "spark.json")
        self.spark_memory: dict[str, Any] = _optional(folder / "spark-memory.json")
        self.spark_equality: dict[str, Any] = _optional(folder / "spark-equality.json")
        self.clients: dict[str, Any] = _optional(folder / "clients.json")
        self.brokers: dict[str, Any] = _optional(folder / "brokers.json")
        self.connections: dict[str, Any] = _optional(folder / "connections.json")
        self.interpreters: dict[str, Any] = _optional(folder / "interpreters.json")
        self.guard: dict[str, int] = _optional(folder.parent / "guard-baseline.json").get("instructions", {})
        self.items = figures(self.run)
        infos = [entry["extra_info"] for entry in self.run["benchmarks"]]
        self.extra: dict[tuple[str, str], dict[str, Any]] = {
            (info["item"], info["peer"]): info for info in infos
        }

    def ratio(self, item: str, peer: str, of: str = "amqpcodec", base: str = "") -> float | None:
        """How many times `of` is faster than `peer`, by medians; None where one was not measured.

        `base` names the item `peer` is looked up in, if it is another one.
        """
        theirs = self.items.get(base or item, {}).get(peer)
        ours = self.items.get(item, {}).get(of)
        return theirs.median / ours.median if theirs and ours else None

    def best_ratio(self, item: str, of: str, others: tuple[str, ...]) -> float | None:
        """As `ratio`, against the fastest of others."""
        ratios = [ratio for other in others if (ratio := self.ratio(item, other, of)) is not None]
        return min(ratios) if ratios else None


def _optional(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found
