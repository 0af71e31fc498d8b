"""The builds of the column sink."""

from __future__ import annotations

import pytest
from support.columns import BUILDS


@pytest.fixture(scope="session", params=BUILDS)
def build(request: pytest.FixtureRequest) -> str:
    """Each build of the sink in turn."""
    name: str = request.param
    return name
