"""The form of the JSON files in `tests/data`: one method or row a line.

    PYTHONPATH=tests python -m support.data_files

writes each in that form again, after a change by hand or by a program.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "data"
FILES = sorted([*DATA.glob("facts/*.json"), *DATA.glob("stats/*.json")])


def formed(value: Any) -> str:
    """Return the text of a file: each object of a list on one line, but the classes with their methods."""
    return _lines(value, "", is_open=True) + "\n"


def _lines(value: Any, before: str, is_open: bool) -> str:
    inner = before + " "
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        parts = [inner + _lines(each, inner, "methods" in each) for each in value]
        return "[\n" + ",\n".join(parts) + f"\n{before}]"
    if is_open and isinstance(value, dict) and any(isinstance(each, (dict, list)) for each in value.values()):
        parts = [f"{inner}{json.dumps(name)}: {_lines(each, inner, True)}" for name, each in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{before}}}"
    return json.dumps(value)


if __name__ == "__main__":
    for file in FILES:
        file.write_text(formed(json.loads(file.read_text(encoding="utf-8"))), encoding="utf-8")
