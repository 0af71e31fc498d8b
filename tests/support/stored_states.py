"""States of reading, stored when their form was new: later versions of the library continue from them.

    PYTHONPATH=src:tests python -m support.stored_states

stores those of a form that was counted up. Those of an older form are then of no use, and deleted.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

from amqpcodec import _state, arrow

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "examples" / "real-bunny.pcap"
CUT = 75_127  # where a record ends, amid a message and its frames
TABLES = ("frames", "methods", "messages", "connections", "errors", "deliveries", "packets")


def path() -> Path:
    """The file with the states of the present form."""
    return ROOT / "tests" / "data" / "states" / f"form-{_state.FORM}.json"


def begun(table: str) -> Any:
    """A session that has read a part of the capture, and its rows."""
    session = arrow.CaptureSession(table)
    rows = [row for batch in session.read(str(CAPTURE), "traffic", CUT) for row in batch.to_pylist()]
    return session, rows


def stored(table: str) -> bytes:
    """The state that was stored."""
    return zlib.decompress(base64.b64decode(json.loads(path().read_text(encoding="utf-8"))[table]))


def main() -> None:
    """Store the states of a form."""
    states = {table: begun(table)[0].suspend() for table in TABLES}
    text = {table: base64.b64encode(zlib.compress(state, 9)).decode() for table, state in states.items()}
    path().parent.mkdir(exist_ok=True)
    path().write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
