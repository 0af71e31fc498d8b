"""Steps of work: what a worker makes of an argument, and what is done when a step fails."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark")

from amqpcodec.spark import steps


def spread(job: str, argument: int) -> list[str]:
    return [f"{job} {number}" for number in range(argument)]


def test_a_worker_gives_each_result_of_a_step_in_a_batch() -> None:
    batches = [*steps._worker(spread, "job")(pickle.dumps(3))]
    assert [batch.num_rows for batch in batches] == [1, 1, 1]
    found = [pickle.loads(octets) for batch in batches for octets in batch.to_pydict()["result"]]
    assert found == spread("job", 3)


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_failed_block_wrote_is_removed_and_its_error_goes_on(
    monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    called: list[Any] = []

    def each(*arguments: Any) -> None:
        called.append(arguments)
        if fails:
            raise OSError("nobody answers")

    monkeypatch.setattr(steps, "each", each)
    job: Any = SimpleNamespace(staging="out/_temporary")
    with pytest.raises(ValueError, match="no") as caught, steps.removed_on_failure("spark", job):  # type: ignore[arg-type]
        raise ValueError("no")
    assert called == [("spark", job, steps.abort, [None])]
    notes = ["what was begun may still be in 'out/_temporary': nobody answers"] if fails else []
    assert getattr(caught.value, "__notes__", []) == notes


def test_nothing_is_removed_behind_a_block_that_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "each", pytest.fail)
    job: Any = SimpleNamespace(staging="")
    with steps.removed_on_failure("spark", job):  # type: ignore[arg-type]
        pass
