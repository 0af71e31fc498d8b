"""How `make test` divides the tests among processes: by files, the long ones first.

Tests of one file share costly fixtures. Those that need a session of Spark are together for the same
reason, whatever their file, since a process starts one session for all of them; and so are those that need a
RabbitMQ, or the package of a specification of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from xdist.scheduler import LoadFileScheduling

# What takes long on its own must not begin last. Tests of Spark and of clients are first: they mostly wait.
LONG = (
    "tests/spark/",
    "tests/clients/",
    "tests/examples/test_client.py",
    "tests/aio/",
    "tests/connection/test_aio.py",
    "tests/test_readme.py",
    "tests/test_docs_programs.py",
    "tests/testing/",
    "tests/generator/test_packaging.py",
    "tests/hostile/test_damage.py",
    "tests/columns/test_capture_s",
    "tests/hostile/test_memory_and_time.py",
    "tests/api/test_typing.py",
    "tests/generator/",
    "tests/wasm/",
    "tests/hostile/",
    "tests/columns/",
    "tests/compat/",
)
TOGETHER = (
    ("tests/spark/",),
    ("tests/generator/test_own_",),
    (
        "tests/clients/",
        "tests/examples/test_client.py",
        "tests/aio/test_client_rabbitmq.py",
        "tests/connection/test_aio.py",
    ),
)


def rank(item: pytest.Item) -> int:
    """The turn of a test: a smaller number comes earlier."""
    return next((turn for turn, path in enumerate(LONG) if item.nodeid.startswith(path)), len(LONG))


def shuffled(items: Sequence[pytest.Item], seed: str) -> list[pytest.Item]:
    """Return the tests with their files in an order by a seed."""
    files = list(dict.fromkeys(item.path for item in items))
    Random(seed).shuffle(files)
    return sorted(items, key=lambda item: files.index(item.path))


class ByFile(LoadFileScheduling):
    """Gives out the tests of one file at a time, and all of those that share something costly at once."""

    def _split_scope(self, nodeid: str) -> str:
        scope: str = super()._split_scope(nodeid)
        return next((paths[0] for paths in TOGETHER if scope.startswith(paths)), scope)
