"""The stored results: their form, and as the report and the chart read them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amqpcodec.bench.comparing import Run, figures

FOLDER = Path(__file__).parent / "results"
WIDTH = 240  # of a line in a stored result: a figure with all that is known of it


def store(name: str, result: Any, folder: Path = FOLDER) -> None:
    """Write a result to `<name>.json`: whatever fits stands on one line, so that a change shows as a line."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text(_lines(result, "") + "\n", encoding="utf-8")


def _lines(value: Any, before: str) -> str:
    line = json.dumps(value)
    if not isinstance(value, (dict, list)) or len(before) + len(line) <= WIDTH:
        return line
    inner = before + " "
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(key)}: {_lines(each, inner)}" for key, each in value.items()]
    else:
        parts = [inner + _lines(each, inner) for each in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n" + ",\n".join(parts) + f"\n{before}{last}"


class Results:
    """One stored run of `make bench`, and what the other targets of bench.mk have stored."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.run: dict[str, Any] = json.loads((folder / "bench.json").read_text(encoding="utf-8"))
        self.anchor: dict[str, Any] = _optional(folder / "anchor.json")
        self.budgets: dict[str, float] = _optional(folder / "budgets.json").get("figures", {})
        self.profile: dict[str, Any] = _optional(folder / "profile.json")
        self.columns: dict[str, Any] = _optional(folder / "columnar.json")
        self.captures: dict[str, Any] = _optional(folder / "columnar-captures.json")
        self.spark: dict[str, Any] = _optional(folder / "spark.json")
        self.steps: dict[str, Any] = _optional(folder / "steps.json")
        self.spark_memory: dict[str, Any] = _optional(folder / "spark-memory.json")
        self.spark_equality: dict[str, Any] = _optional(folder / "spark-equality.json")
        self.clients: dict[str, Any] = _optional(folder / "clients.json")
        self.client_layer: dict[str, Any] = _optional(folder / "client-layer.json")
        self.client_memory: dict[str, int] = _optional(folder / "client-memory.json")
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
        """How many times `of` is faster than `peer`, by the shortest times; None where one was not measured.

        `base` names the item `peer` is looked up in, if it is another one.
        """
        theirs = self.items.get(base or item, {}).get(peer)
        ours = self.items.get(item, {}).get(of)
        return theirs / ours if theirs and ours else None

    def best_ratio(self, item: str, of: str, others: tuple[str, ...]) -> float | None:
        """As `ratio`, against the fastest of others."""
        ratios = [ratio for other in others if (ratio := self.ratio(item, other, of)) is not None]
        return min(ratios) if ratios else None


def _optional(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def shortest(runs: Sequence[Run]) -> dict[str, Any]:
    """Return one run of several of the same code: of each item and peer that of the shortest time.

    Other work on a machine comes in bursts that outlast one measurement, so more rounds of it would not help.
    Runs that are minutes apart do, for all libraries alike.
    """
    kept: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in (entry for run in runs for entry in run["benchmarks"]):
        key = entry["extra_info"]["item"], entry["extra_info"]["peer"]
        if key not in kept or entry["stats"]["min"] < kept[key]["stats"]["min"]:
            kept[key] = entry
    return {**runs[0], "benchmarks": list(kept.values())}


if __name__ == "__main__":
    store("bench", shortest([json.loads(Path(path).read_text(encoding="utf-8")) for path in sys.argv[1:]]))
