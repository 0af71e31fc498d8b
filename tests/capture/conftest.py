"""Every test of captures runs on each build in turn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.implementation import Implementation

from amqpcodec import capture


@pytest.fixture(autouse=True, scope="module")
def build(impl: Implementation) -> Iterator[Implementation]:
    """Makes `amqpcodec.capture` use a build."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("streams", "events"):
            layer = impl.capture(module)
            for name in layer.__all__:
                patch.setattr(capture, name, getattr(layer, name))
        patch.setattr(
            "amqpcodec.capture.frames.DirectionState", impl.capture("direction_state").DirectionState
        )
        yield impl
