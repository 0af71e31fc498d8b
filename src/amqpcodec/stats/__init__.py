"""A summary of captures: who talked, what was carried where, how long answers took, what went wrong.

    from amqpcodec import stats

    collector = stats.Collector(top=20)
    collector.add("trace.pcapng", "trace.pcapng")
    print(collector.summary().confirms.percentiles)

It needs pyarrow, the extra ``arrow``. Memory is bounded, whatever is read.
"""

from __future__ import annotations

try:
    import pyarrow  # noqa: F401  # imported here, so that the error below says what to install
except ImportError as error:
    raise ImportError('amqpcodec.stats needs pyarrow: pip install "amqpcodec[arrow]"') from error

from .collecting import Collector
from .summary import (
    Band,
    Client,
    Ending,
    Finding,
    Incident,
    Latency,
    Life,
    Party,
    Problem,
    Publishers,
    QueueDepth,
    Ranking,
    Rates,
    Slow,
    Step,
    Summary,
    Wait,
)

__all__ = [
    "Band",
    "Client",
    "Collector",
    "Ending",
    "Finding",
    "Incident",
    "Latency",
    "Life",
    "Party",
    "Problem",
    "Publishers",
    "QueueDepth",
    "Ranking",
    "Rates",
    "Slow",
    "Step",
    "Summary",
    "Wait",
]
