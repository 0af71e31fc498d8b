"""What a user meets first when something is missing or misspelt: the message says what to do."""

from __future__ import annotations

import pytest
from support.subprocesses import output

import amqpcodec
from amqpcodec import capture
from amqpcodec.connection import Connection

WITHOUT = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {library!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Nothing())
try:
    {statement}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("library", "statement", "extra"),
    [
        ("pyarrow", "import amqpcodec.arrow", "arrow"),
        ("pyarrow", "import amqpcodec.stats", "arrow"),
        ("pyarrow", "from amqpcodec.spark import register", "spark"),
        ("pyspark", "from amqpcodec.spark import register", "spark"),
    ],
)
def test_a_missing_library_is_named_with_the_extra_that_brings_it(
    library: str, statement: str, extra: str
) -> None:
    said = output("-c", WITHOUT.format(library=library, statement=statement), impl=None).decode()
    assert f'pip install "amqpcodec[{extra}]"' in said
    assert library in said.lower()


def test_a_module_given_for_a_dialect_is_told_from_its_name() -> None:
    with pytest.raises(ValueError, match=r"the module amqpcodec\.amqp08 has 'amqp-0-8'"):
        amqpcodec.dialect("amqp08")
    with pytest.raises(ValueError, match=r"no dialect \['x'\]; there are amqp-0-8, "):
        amqpcodec.dialect(["x"])  # type: ignore[arg-type]


@pytest.mark.parametrize("file", [None, b"trace.pcap", 5.0])
def test_what_is_no_file_is_called_so(file: object) -> None:
    said = f"file: must be a path or a binary file object, not {type(file).__name__}"
    with pytest.raises(TypeError, match=said):
        next(capture.read_frames(file))  # type: ignore[arg-type]


@pytest.mark.parametrize("data", ["text", 5, None])
def test_text_for_octets_is_refused_by_connections_as_by_decoders(data: object) -> None:
    refused = []
    for feed in (Connection("client").receive_data, amqpcodec.dialect("amqp-0-9-1").FrameDecoder().feed):
        with pytest.raises(TypeError) as caught:
            next(feed(data))
        refused.append(str(caught.value))
    assert refused[0] == refused[1]
