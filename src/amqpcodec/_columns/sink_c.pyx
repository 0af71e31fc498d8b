"""Column sinks of the compiled build: those of the pure one, over columns that lie in C memory."""

from .buffers_c import Columns
from .sink_py import make_sink as _make_sink


def make_sink(table, columns, **options):
    """The sink of a table; see `sink_py.make_sink`."""
    return _make_sink(table, columns, store=Columns, **options)
