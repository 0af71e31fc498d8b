"""Whatever a program rebinds or changes in a library after `install` counts as it does without.

No list of names is kept here: every name of the modules is patched in turn, every entry of their tables, and
every built-in name that their functions look up. So one that a new release looks up is tried as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from support.compat.engine import Copy, in_use
from support.compat.pieces import PIECES, Piece, outcomes
from support.compat.stand_ins import Place, places
from support.marks import replaces

from amqpcodec import compat

pytestmark = replaces

MODULES = {
    "pamqp": ("base", "body", "commands", "common", "constants", "decode", "encode", "frame", "header",
              "heartbeat"),
    "pika": ("amqp_object", "compat", "data", "frame", "spec", "connection", "callback"),
    "amqp": ("serialization", "basic_message", "method_framing", "utils", "abstract_channel"),
}  # fmt: skip
"""Where the functions that are replaced look names up, and those that these call."""
MANY = {"pamqp": 250, "pika": 100, "amqp": 50}
"""At least so many patches change what the pieces give."""
OPTIONS = ({"loops": True}, {"tolerant": True})


def with_each(patches: Iterable[Place], pieces: dict[str, Piece], peer: Copy) -> dict[str, dict[str, Any]]:
    """Return the outcome of each piece while one name after the other is patched."""
    found = {}
    for place in patches:
        with place.patched():
            found[place.name] = outcomes(pieces, peer)
    return found


@pytest.mark.slow("patches every name")
@pytest.mark.parametrize("library", compat.PEERS)
def test_whatever_somebody_patches_later_counts_as_it_does_in_stock(library: str) -> None:
    pytest.importorskip(library)
    peer = in_use(library)
    pieces = PIECES[library](peer)
    usual = outcomes(pieces, peer)
    patches = list(places(library, MODULES[library]))
    stock = with_each(patches, pieces, peer)
    assert outcomes(pieces, peer) == usual
    telling = [place for place in patches if stock[place.name] != usual]
    assert len(telling) > MANY[library]
    for options in OPTIONS:
        with compat.installed(library, **options) as given:
            assert "was replaced before" not in given[library].stock.values()
            assert outcomes(pieces, peer) == usual
            served = compat.status()[library].fast
            accelerated = with_each(telling, pieces, peer)
            differing = {
                name: [key for key in found if found[key] != stock[name][key]]
                for name, found in accelerated.items()
            }
            assert {name: keys for name, keys in differing.items() if keys} == {}
            undone = compat.status()[library].fast
            assert outcomes(pieces, peer) == usual
            assert compat.status()[library].fast - undone == served - given[library].fast
