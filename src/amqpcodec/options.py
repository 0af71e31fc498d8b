"""Every option of captures, decoding, columns, files written, Spark and commands: declared here alone.

An option has one name, one type, one default and one meaning. Functions and classes take the options of a
class below as keywords. The commands and the data source of Spark derive theirs: ``frame_max`` is
``--frame-max`` in a command and ``frameMax`` in Spark. Programs that pass options on use the classes as
types:

    def traffic(file: str, **options: Unpack[CaptureOptions]) -> CaptureReader:
        return read_capture(file, "messages", **options)
"""

# Annotations are read when the program runs, so they are not put off here.
from collections.abc import Iterable
from types import ModuleType
from typing import Annotated, Literal, TypedDict

from ._backend import IMPL
from ._kernel.wire import OVERHEAD
from ._options import (
    AUTO,
    Choice,
    Dialect,
    Each,
    Flag,
    Kind,
    Number,
    Option,
    Pattern,
    Ports,
    Seconds,
    Size,
    Text,
    Words,
)
from .limits import Limits

__all__ = [
    "BatchOptions",
    "CaptureOptions",
    "ColumnOptions",
    "ConvertOptions",
    "DecodeOptions",
    "DecodingOptions",
    "EncodingOptions",
    "FileOptions",
    "FrameOptions",
    "InputOptions",
    "ParquetOptions",
    "RawFrameOptions",
    "RecorderOptions",
    "SaveOptions",
    "SparkConversionOptions",
    "SparkDecodingOptions",
    "SparkEncodingOptions",
    "SparkMessageOptions",
    "SparkReadOptions",
    "SparkStreamOptions",
    "SparkWriteOptions",
    "StatsOptions",
    "StreamOptions",
    "TableOptions",
    "TrackingOptions",
]

# Defaults that whoever takes no options has by name.
AMQP_PORT = 5672
OUT_OF_ORDER_BYTES = 4 << 20
OUT_OF_ORDER_SEGMENTS = 4096
FLOW_TIMEOUT = 3600.0
KEEP = "keep"
FRAME_MAX = 16 << 20  # to read
DIALECT = "rabbitmq-0-9-1"  # of octets that do not show theirs
STREAM_TABLES = ("frames", "methods", "messages", "connections", "errors")
TABLES = (*STREAM_TABLES, "deliveries", "packets")  # those of captures
_COMPRESSIONS = Choice("zstd", "snappy", "gzip", "none")
_DIALECT_TO_READ = (
    "name of the dialect, or auto: the protocol header and connection.start tell; in Python also the module "
    "of a foreign one"
)
_LIMITS = Limits()


# The options of one thing. The classes that functions take are put together of these below.


class TrackingOptions(TypedDict, total=False):
    """How the TCP connections of a capture are followed."""

    port: Annotated[
        int | Iterable[int] | None,
        Option(
            Ports(),
            AMQP_PORT,
            "server port or ports; any (in Python None) for every connection with AMQP in it",
        ),
    ]
    out_of_order_bytes: Annotated[
        int, Option(Size(), OUT_OF_ORDER_BYTES, "how far out of order TCP segments of one direction may be")
    ]
    out_of_order_segments: Annotated[
        int,
        Option(Number(), OUT_OF_ORDER_SEGMENTS, "how many of them may wait for an earlier one"),
    ]
    flow_timeout: Annotated[
        float,
        Option(
            Seconds(),
            FLOW_TIMEOUT,
            "seconds of silence after which a segment that does not go on exactly where its direction stands "
            "is taken to be of a new connection",
        ),
    ]
    copies: Annotated[
        Literal["keep", "drop"],
        Option(
            Choice(KEEP, "drop"),
            KEEP,
            "what becomes of connections that were recorded twice, with other addresses or in another "
            "tunnel: they are kept, or left out",
        ),
    ]


class DecodingOptions(TypedDict, total=False):
    """How frames are read."""

    dialect: Annotated[str | ModuleType, Option(Dialect(auto=True), AUTO, _DIALECT_TO_READ)]
    frame_max: Annotated[
        int,
        Option(Size(OVERHEAD), FRAME_MAX, "bytes of the largest frame accepted, whatever was negotiated"),
    ]


class _Direction(TypedDict, total=False):
    direction: Annotated[
        int, Option(Number(0, 1), 0, "of a stream: 0 from the client to the server, 1 from the server to it")
    ]


class _Columns(TypedDict, total=False):
    columns: Annotated[
        Iterable[str] | None,
        Option(
            Words(),
            None,
            "only these columns, in this order; one in a struct is named with a dot",
        ),
    ]
    mode: Annotated[
        Literal["permissive", "drop", "fail"],
        Option(
            Choice("permissive", "drop", "fail", spark=("permissive", "dropmalformed", "failfast")),
            "permissive",
            "what becomes of rows in error: they are kept, left out, or the first one raises",
        ),
    ]


class _Credentials(TypedDict, total=False):
    include_credentials: Annotated[bool, Option(Flag(), False, "show login data")]


class _Bodies(TypedDict, total=False):
    max_body_bytes: Annotated[
        int,
        Option(Size(), _LIMITS.body_size, "bytes of the largest body; a larger one is left out of its row"),
    ]
    max_open_messages: Annotated[
        int,
        Option(
            Number(),
            _LIMITS.open_messages,
            "messages of one direction that may be incomplete at a time",
        ),
    ]


class BatchOptions(TypedDict, total=False):
    """How large batches are."""

    batch_rows: Annotated[int, Option(Number(), 10_000, "rows of a full batch; large ones fill it sooner")]


class TableOptions(TypedDict, total=False):
    """Which table is read."""

    table: Annotated[str, Option(Choice(*TABLES), "messages", "which table is read")]


class SaveOptions(TypedDict, total=False):
    """Options for a folder that is there already."""

    save: Annotated[
        Literal["errorifexists", "append", "overwrite"],
        Option(
            Choice("errorifexists", "append", "overwrite"),
            "errorifexists",
            "what to do if the folder is there: fail, add to it, or replace what is in it",
        ),
    ]


class ParquetOptions(TypedDict, total=False):
    """How files of columns are written."""

    compression: Annotated[
        Literal["zstd", "snappy", "gzip", "none"], Option(_COMPRESSIONS, "zstd", "how files are compressed")
    ]


class FileOptions(ParquetOptions, total=False):
    """How a file of columns is written that is not one of many."""

    row_group_rows: Annotated[
        int, Option(Number(), 131_072, "rows of a group in the file; large ones fill it sooner")
    ]


class EncodingOptions(TypedDict, total=False):
    """How messages are written as frames."""

    dialect: Annotated[
        str | ModuleType,
        Option(
            Dialect(auto=False),
            DIALECT,
            "name of the dialect to write; in Python also the module of a foreign one",
        ),
    ]
    frame_max: Annotated[
        int, Option(Size(0), 131_072, "bytes of the largest frame, to which bodies are cut; 0 for no limit")
    ]
    skip_incomplete: Annotated[
        bool,
        Option(Flag(), False, "leave out rows in error and incomplete ones, else refused"),
    ]


class _Build(TypedDict, total=False):
    impl: Annotated[
        Literal["c", "py"],
        Option(
            Choice("c", "py"),
            "c",
            "the build of workers: c is compiled, py the pure one",
        ),
    ]


class _Input(TypedDict, total=False):
    input: Annotated[
        Literal["capture", "stream"],
        Option(
            Choice("capture", "stream"), "capture", "what files are: captures, or the octets of one direction"
        ),
    ]


class _SparkInput(TypedDict, total=False):
    input: Annotated[
        Literal["auto", "capture", "stream"],
        Option(
            Choice("auto", "capture", "stream"),
            "auto",
            "what files are: captures, or the octets of one direction; their first octets tell",
        ),
    ]


class RotatedOptions(TypedDict, total=False):
    """Which captures are one recording."""

    rotated: Annotated[
        Literal["auto", "true", "false"],
        Option(
            Choice("auto", "true", "false"),
            "auto",
            "which captures are one recording: those of a series, as their names tell, whose times follow "
            "each other, all in a folder, or each its own",
        ),
    ]
    series_pattern: Annotated[
        str | None,
        Option(
            Pattern(),
            None,
            "a regular expression that says which series a file belongs to: its first group, or else the "
            "name without what it matches",
        ),
    ]


class _SparkRecordings(RotatedOptions, total=False):
    stitch: Annotated[
        bool, Option(Flag(), True, "whether connections go on from one part of a recording to the next")
    ]
    max_group_bytes: Annotated[
        int | None,
        Option(
            Size(),
            None,
            "bytes of small files that follow each other for one task; by default the share of a core, 1g at "
            "most",
        ),
    ]
    max_partition_bytes: Annotated[
        int | None,
        Option(
            Size(),
            None,
            "bytes of a large file for one task; by default the share of a core, 256m at most",
        ),
    ]
    min_partitions: Annotated[
        int | None,
        Option(
            Number(),
            None,
            "tasks to divide the files among, if these are large enough; by default one for each core",
        ),
    ]


class _SparkCorrupt(TypedDict, total=False):
    column_name_of_corrupt_record: Annotated[
        str,
        Option(Kind(), "_corrupt_record", "the name of that column in schema and result, not in `columns`"),
    ]


class _SparkFiles(TypedDict, total=False):
    recursive_file_lookup: Annotated[bool, Option(Flag(), False, "whether folders in folders are read")]
    path_glob_filter: Annotated[str | None, Option(Kind(), None, "a pattern that names of files have to fit")]
    bad_files: Annotated[
        Literal["fail", "skip"],
        Option(
            Choice("fail", "skip"),
            "fail",
            "what becomes of files that cannot be read: they fail all, or each is a row in errors",
        ),
    ]


class _SparkSource(TypedDict, total=False):
    min_file_age: Annotated[
        float,
        Option(
            Seconds(),
            60.0,
            "seconds after which a file is complete though none of its series has a later name; of streaming",
        ),
    ]
    max_files_per_trigger: Annotated[
        int | None, Option(Number(), None, "files to take at a time; of streaming, needs PySpark 4.2")
    ]


class _SparkPaths(TypedDict, total=False):
    paths: Annotated[Iterable[str], Option(Words(), (), "files, folders and patterns")]


class InternalOptions(TypedDict, total=False):
    """For use inside the package: no user needs them, and `help` does not show them."""

    _impl: Annotated[str, Option(Choice("c", "py"), IMPL, "the build")]
    _check_all: Annotated[
        bool, Option(Flag(), False, "look for errors in any mode, also in fields that nobody asked for")
    ]
    _waits: Annotated[bool, Option(Flag(), False, "join deliveries to publishes for who reads on")]
    _batch_bytes: Annotated[int, Option(Size(), 4 << 20, "bytes of frames that make a batch full")]


# What functions and classes take.


class FrameOptions(TrackingOptions, DecodingOptions, total=False):
    """Options of `capture.read_frames`."""


class RawFrameOptions(DecodingOptions, _Direction, total=False):
    """Options of `capture.read_raw_frames`."""


class _Decoding(_Columns, DecodingOptions, _Credentials, _Bodies, total=False):
    pass


class ColumnOptions(_Decoding, _Direction, total=False):
    """Options of `arrow.decode_frames`, its siblings, and `arrow.ValueDecoder`."""


class StreamOptions(ColumnOptions, BatchOptions, total=False):
    """Options of `arrow.read_stream` and `arrow.BatchDecoder`."""


class CaptureOptions(_Decoding, TrackingOptions, BatchOptions, total=False):
    """Options of `arrow.read_capture` and `arrow.CaptureSession`."""


class AllColumnOptions(ColumnOptions, InternalOptions, total=False):
    """`ColumnOptions` inside the package."""


class AllStreamOptions(StreamOptions, InternalOptions, total=False):
    """`StreamOptions` inside the package."""


class AllCaptureOptions(CaptureOptions, InternalOptions, total=False):
    """`CaptureOptions` inside the package."""


class InputOptions(_Input, FrameOptions, _Direction, total=False):
    """Options of commands about the files that they read."""


class DecodeOptions(InputOptions, _Credentials, total=False):
    """Options of ``amqpcodec decode`` about what it reads."""


class PrintOptions(TypedDict, total=False):
    """Options of ``amqpcodec decode`` about what it prints."""

    format: Annotated[
        Literal["text", "jsonl"], Option(Choice("text", "jsonl"), "text", "lines for people, or JSON objects")
    ]
    messages: Annotated[bool, Option(Flag(), False, "one line a message, not a frame")]
    limit: Annotated[
        int | None,
        Option(Number(), None, "stop after so many frames (or messages), as tcpdump -c", letter="c"),
    ]
    count: Annotated[bool, Option(Flag(), False, "print only how many frames (or messages) there are")]
    body_bytes: Annotated[int, Option(Number(0), 64, "bytes of a body to show")]
    summary: Annotated[bool, Option(Flag(), False, "print only counts of what is in each file")]
    errors: Annotated[
        bool, Option(Flag(), False, "print only what went wrong, and before each what came before it there")
    ]
    before: Annotated[
        int | None,
        Option(Number(0), None, "with --errors: how many frames to show before each (5), as grep -B"),
    ]
    color: Annotated[
        Literal["auto", "always", "never"],
        Option(Choice("auto", "always", "never"), "auto", "whether lines are coloured: auto on a terminal"),
    ]


class _Names(TypedDict, total=False):
    exchange: Annotated[
        Iterable[str] | None,
        Option(
            Each(Text("GLOB")),
            None,
            "only methods that name such an exchange, and their content; '' is the default one",
        ),
    ]
    queue: Annotated[
        Iterable[str] | None,
        Option(
            Each(Text("GLOB")), None, "only methods about such a queue or its consumers, and their content"
        ),
    ]


class SelectionOptions(_Names, total=False):
    """Options of ``amqpcodec decode`` about the frames that it selects."""

    connection: Annotated[
        Iterable[str] | None,
        Option(
            Each(Text("WHICH")),
            None,
            "only this one: its number, or its ends as HOST:PORT or HOST:PORT-HOST:PORT",
        ),
    ]
    since: Annotated[
        str | None,
        Option(Text("TIME"), None, "only from this time on: 2026-11-22T10:15:03.5, 10:15, +90s; UTC"),
    ]
    until: Annotated[str | None, Option(Text("TIME"), None, "only before this time")]
    channel: Annotated[
        Iterable[int] | None, Option(Each(Number(0, 65535, "channel")), None, "only this channel")
    ]
    method: Annotated[
        Iterable[str] | None,
        Option(Each(Text("GLOB")), None, "only such methods and their content: 'basic.*'"),
    ]
    trace: Annotated[
        str | None,
        Option(
            Text("ID"),
            None,
            "only messages whose headers name this trace (traceparent, b3, sw8, uber-trace-id), and what "
            "settled them",
        ),
    ]


class ConvertOptions(
    _Input, TableOptions, _Decoding, TrackingOptions, _Direction, RotatedOptions, FileOptions, total=False
):
    """Options of ``amqpcodec convert``."""

    quiet: Annotated[bool, Option(Flag(), False, "say nothing where a file was written")]


class StatsOptions(InputOptions, total=False):
    """Options of `stats.Collector`."""

    top: Annotated[
        int, Option(Number(1, 1000), 10, "how many of the largest, slowest and first to keep of each kind")
    ]


class ReportOptions(TypedDict, total=False):
    """Options of ``amqpcodec stats`` about what it writes."""

    format: Annotated[
        Literal["text", "json", "prometheus"],
        Option(
            Choice("text", "json", "prometheus"),
            "text",
            "tables for people, one JSON object with units, or metrics in Prometheus' text format",
        ),
    ]
    html: Annotated[
        str | None,
        Option(Text("FILE"), None, "also write a page: a verdict, problems, tables and charts"),
    ]


class RecorderOptions(_Credentials, total=False):
    """Options of `record.Recorder`."""

    rotate_bytes: Annotated[
        int | None,
        Option(Size(1024), None, "go on to another file before one is larger; names get a number and a time"),
    ]
    rotate_seconds: Annotated[
        float | None, Option(Seconds(), None, "go on to another file after so long, likewise")
    ]
    keep_files: Annotated[int | None, Option(Number(), None, "keep so many files, and remove older ones")]
    queue_bytes: Annotated[
        int,
        Option(
            Size(1 << 16), 64 << 20, "how much may wait for the disk; what is more is left out and counted"
        ),
    ]
    server_port: Annotated[
        int, Option(Number(1, 65535, "port"), AMQP_PORT, "port of servers in the capture, whatever theirs is")
    ]


class RecordOptions(RecorderOptions, total=False):
    """Options of ``amqpcodec record``."""

    listen: Annotated[str, Option(Text("HOST:PORT"), "127.0.0.1:5673", "where clients connect to")]
    to: Annotated[
        str, Option(Text("URL"), "amqp://localhost", "the broker: amqp://HOST:PORT, or amqps:// for TLS")
    ]
    certificate: Annotated[
        str | None, Option(Text("FILE"), None, "certificate to show to clients, which then use TLS")
    ]
    key: Annotated[str | None, Option(Text("FILE"), None, "its key, where the certificate's file has none")]
    rate: Annotated[
        int | None, Option(Size(1), None, "how fast a client may send, in bytes a second; faster ones wait")
    ]
    largest: Annotated[
        int | None,
        Option(Size(), None, "the largest message that a client may publish; its channel is closed with 311"),
    ]


# The name is a word of Python, which a class cannot have.
_Place = TypedDict(
    "_Place",
    {"from": Annotated[int, Option(Number(), 1, "begin with this message, by its number in the capture")]},
    total=False,
)


class ReplayOptions(_Input, RotatedOptions, _Names, _Place, total=False):
    """Options of ``amqpcodec replay``, beside those of `FrameOptions`."""

    speed: Annotated[
        str, Option(Text("N|max"), "1", "times the pace of the capture, or max for as fast as it goes")
    ]
    dry_run: Annotated[bool, Option(Flag(), False, "publish nothing; print what would be published")]
    drop_user_id: Annotated[
        bool, Option(Flag(), False, "leave out a user_id other than the user of the URL, which is refused")
    ]


class SessionOptions(TypedDict, total=False):
    """Options of ``amqpcodec spark`` about the session."""

    master: Annotated[
        str | None,
        Option(Text("URL"), None, "where Spark runs; without spark-submit: local[*], this machine"),
    ]
    remote: Annotated[str | None, Option(Text("URL"), None, "a Spark Connect server, sc://host:port")]
    conf: Annotated[Iterable[str], Option(Each(Text("NAME=VALUE")), (), "a setting of Spark")]


class SparkDecodingOptions(ColumnOptions, _Build, total=False):
    """Options of `spark.from_amqp` and `spark.decode_frames`."""


class SparkCaptureOptions(CaptureOptions, _Build, total=False):
    """Options of `spark.decode_captures`."""


class SparkStreamOptions(StreamOptions, _Build, total=False):
    """Options of `spark.decode_streams`."""


class _SparkReading(
    CaptureOptions, _Direction, _SparkInput, _SparkRecordings, _SparkFiles, _SparkCorrupt, _Build, total=False
):
    pass


class SparkConversionOptions(_SparkReading, ParquetOptions, SaveOptions, total=False):
    """Options of `spark.pcap_to_parquet`."""


class SparkReadOptions(_SparkPaths, TableOptions, _SparkReading, _SparkSource, total=False):
    """Options of ``read.format("amqp")`` and ``readStream``."""


class SparkMessageOptions(EncodingOptions, _Build, total=False):
    """Options of `spark.to_amqp`."""


class SparkEncodingOptions(EncodingOptions, SaveOptions, _Build, total=False):
    """Options of `spark.parquet_to_stream`."""


class SparkWriteOptions(EncodingOptions, _Build, total=False):
    """Options of ``write.format("amqp")``."""

    path: Annotated[str, Option(Kind(), "", "the folder to write")]
    output: Annotated[
        Literal["stream", "capture", "rows"],
        Option(
            Choice("stream", "capture", "rows"),
            "stream",
            "what each task writes: frames with an index, a capture, or a Parquet file with the frames of "
            "each message",
        ),
    ]
    keys: Annotated[Iterable[str], Option(Words(), (), "columns to keep beside the frames of a message")]
