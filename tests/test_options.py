"""Every option is declared once: Python, commands, Spark and the documentation have it from there."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable
from itertools import chain
from math import inf
from numbers import Integral
from pathlib import Path
from typing import Any

import pytest
from support.subprocesses import python

pytest.importorskip("pyarrow")

from amqpcodec import Limits, arrow, capture, cli, options, record, replay, stats
from amqpcodec._options import Option, Ports, Seconds, declared, resolve
from amqpcodec.cli import SUBCOMMANDS, main
from amqpcodec.connection import ConnectionLimits
from amqpcodec.options import CaptureOptions

DOCS = Path(__file__).parents[1] / "docs"
CONSUMERS: dict[Callable[..., Any], type] = {
    capture.read_frames: options.FrameOptions,
    capture.read_raw_frames: options.RawFrameOptions,
    capture.read_items: options.DecodingOptions,
    arrow.read_capture: options.CaptureOptions,
    arrow.scan_capture: options.CaptureOptions,
    arrow.CaptureSession: options.CaptureOptions,
    arrow.read_stream: options.StreamOptions,
    arrow.BatchDecoder: options.StreamOptions,
    arrow.decode_frames: options.ColumnOptions,
    arrow.decode_methods: options.ColumnOptions,
    arrow.decode_messages: options.ColumnOptions,
    arrow.decode_values: options.ColumnOptions,
    arrow.ValueDecoder: options.ColumnOptions,
    arrow.encode_messages: options.EncodingOptions,
    arrow.encode_values: options.EncodingOptions,
    arrow.StreamWriter: options.EncodingOptions,
    arrow.CaptureWriter: options.EncodingOptions,
    stats.Collector: options.StatsOptions,
    record.Recorder: options.RecorderOptions,
    replay.read_publishes: options.FrameOptions,
}
COMMANDS = {
    "decode": (options.DecodeOptions, options.PrintOptions, options.SelectionOptions),
    "convert": (options.ConvertOptions,),
    "stats": (options.StatsOptions, options.ReportOptions),
    "record": (options.RecordOptions,),
    "replay": (options.FrameOptions, options.ReplayOptions),
    "spark convert": (options.TableOptions, options.SparkConversionOptions, options.SessionOptions),
    "spark replay": (options.SparkEncodingOptions, options.SessionOptions),
}
PAGES = {
    "decode": "capture.md",
    "convert": "convert.md",
    "stats": "stats.md",
    "record": "record.md",
    "replay": "replay.md",
}


def of_command(command: str) -> dict[str, Option]:
    """Return the options of a command, by their arguments."""
    found: dict[str, Option] = {}
    for known in COMMANDS[command]:
        for name, option in declared(known).items():
            found[("--no-" if option.default is True else "--") + name.replace("_", "-")] = option
    return found


def _classes() -> list[type]:
    public = [getattr(options, name) for name in options.__all__]
    return list(dict.fromkeys([*public, *chain.from_iterable(COMMANDS.values())]))


def helped(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says of itself, on one line."""
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda consumer: consumer.__name__)
def test_help_and_the_signature_show_every_option(consumer: Callable[..., Any]) -> None:
    shown = inspect.signature(consumer).parameters
    for name, option in declared(CONSUMERS[consumer]).items():
        assert shown[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert shown[name].default in (option.default, options.DIALECT)
        documented = " ".join((consumer.__doc__ or "").split())
        assert f"{name}: {option.doc}." in documented
    assert not any(name.startswith("_") for name in shown)


def test_the_compiled_tracker_has_the_same_names_and_defaults() -> None:
    from amqpcodec.capture.streams_py import StreamTracker

    shown = inspect.signature(StreamTracker).parameters
    for name, option in declared(options.TrackingOptions).items():
        assert shown[name].default == option.default


@pytest.mark.parametrize(
    "consumer",
    [each for each, known in CONSUMERS.items() if "dialect" in declared(known)],
    ids=lambda consumer: consumer.__name__,
)
def test_a_name_that_is_no_option_is_refused_with_the_nearest(consumer: Callable[..., Any]) -> None:
    required = [
        None
        for each in inspect.signature(consumer).parameters.values()
        if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    ]
    with pytest.raises(TypeError, match=rf"{consumer.__name__}\(\) got .* 'dialects'; .* is 'dialect'"):
        consumer(*required, dialects="auto")


@pytest.mark.parametrize("name", ["x", "zebra", "foo", "resolution_of_names"])
def test_a_name_that_is_like_no_option_is_refused_without_a_guess(name: str) -> None:
    with pytest.raises(TypeError, match=rf"unexpected keyword argument '{name}'$"):
        resolve(options.CaptureOptions, {name: 1})


@pytest.mark.parametrize("text", ["any,5", "5,any", "any,any,1"])
def test_ports_beside_any_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="'any' is every port, and goes with no other"):
        Ports().parse(text)
    assert Ports().parse(" Any, any") is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"frame_max": "1m"}, "frame_max: must be a whole number, not str"),
        ({"frame_max": True}, "frame_max: must be a whole number, not bool"),
        ({"columns": "ts"}, "columns: must be several names, not str"),
        ({"include_credentials": 1}, "include_credentials: must be True or False, not int"),
        ({"flow_timeout": "1h"}, "flow_timeout: must be a number of seconds, not str"),
        ({"mode": None}, "mode: must be text, not NoneType"),
        ({"dialect": 1}, "dialect: must be a name or a module, not int"),
        ({"port": [5672, "5671"]}, "port: must be a whole number, not str"),
        ({"port": b"56"}, "port: must be a whole number, not bytes"),
        ({"columns": [1]}, "columns: must be names, not int"),
        ({"columns": b"ts"}, "columns: must be names, not int"),
    ],
)
def test_a_value_of_another_type_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        arrow.read_capture((), **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mode": "loud"}, "mode: 'loud' is none of permissive, drop, fail"),
        ({"port": 70000}, "port: must be 1 to 65535, not 70000"),
        ({"flow_timeout": -1}, "flow_timeout: must be at least 0 seconds"),
        ({"flow_timeout": float("nan")}, "flow_timeout: must be at least 0 seconds"),
        ({"batch_rows": 0}, "batch_rows: must be 1 to"),
        ({"port": []}, "port: there is no port in it"),
        ({"dialect": re}, "dialect: module 're' is no dialect"),
        ({"dialect": "AUTO"}, "dialect: no dialect 'AUTO'; there are auto, amqp-0-8, "),
        ({"dialect": "amqp-1-0"}, "dialect: no dialect 'amqp-1-0'; there are auto, amqp-0-8, "),
    ],
)
def test_a_value_out_of_range_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        arrow.read_capture((), **given)


class Whole:
    """A whole number of another library, as NumPy has them."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __int__(self) -> int:
        return self._value


Integral.register(Whole)


def test_whole_numbers_of_other_libraries_are_taken() -> None:
    values = resolve(CaptureOptions, {"batch_rows": Whole(5), "port": Whole(5671)})
    assert (values["batch_rows"], values["port"]) == (5, [5671])
    assert type(values["batch_rows"]) is int


def test_a_time_too_large_for_a_float_is_a_long_time() -> None:
    assert resolve(CaptureOptions, {"flow_timeout": 10**400})["flow_timeout"] == inf


@pytest.mark.parametrize("text", ["9" * 5000, "٣", "3٣", "-1", "1e3", ""])
def test_text_that_is_no_number_has_an_error_of_our_own(text: str) -> None:
    options = declared(CaptureOptions)
    for name, what in (("batch_rows", "number"), ("frame_max", "size"), ("flow_timeout", "time")):
        with pytest.raises(ValueError, match=f"is no {what}"):
            options[name].kind.parse(text)


@pytest.mark.parametrize("known", _classes(), ids=lambda known: known.__name__)
def test_every_default_is_a_value_and_has_a_text(known: type) -> None:
    values = resolve(known, {})
    for name, option in declared(known).items():
        if option.default not in (None, (), ""):
            assert option.kind.parse(option.kind.show(option.default)) == values[name]


def test_one_name_has_one_meaning() -> None:
    """Frames and dialects are read and written; Spark detects what files are, commands take an argument.

    The formats are those of what a command prints.
    """
    meanings: dict[str, set[str]] = {}
    for known in _classes():
        for name, option in declared(known).items():
            meanings.setdefault(name, set()).add(f"{option.default} {option.doc}")
    several = {name for name, found in meanings.items() if len(found) > 1}
    assert several == {"dialect", "format", "frame_max", "input"}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_every_option_with_its_text(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = helped(command, capsys)
    for argument, option in of_command(command).items():
        assert argument in shown
        assert option.doc in shown
        assert not option.letter or f" -{option.letter} " in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_no_option_that_is_not_declared(command: str) -> None:
    parser: Any = cli._parser()
    for word in command.split():
        (commands,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
        parser = commands.choices[word]
    found = {each.option_strings[-1] for each in parser._actions if each.option_strings}
    assert found - {"--help"} == of_command(command).keys()


def test_an_argument_that_is_given_several_times_has_a_list() -> None:
    channel = declared(options.SelectionOptions)["channel"]
    assert channel.check([1, 65535]) == [1, 65535]
    assert channel.check(None) is None
    with pytest.raises(ValueError, match="must be 0 to 65535, not 65536"):
        channel.check([65536])


def test_spark_has_every_option_in_its_own_spelling() -> None:
    pytest.importorskip("pyspark")
    from amqpcodec.spark.options import read_options, spark_name, write_options

    def texts(known: type) -> dict[str, str]:
        return {
            spark_name(name): option.kind.show(option.default)
            for name, option in declared(known).items()
            if option.default not in (None, (), "")
        }

    read, written = texts(options.SparkReadOptions), texts(options.SparkWriteOptions)
    assert {"frameMax", "includeCredentials", "outOfOrderBytes", "maxBodyBytes"} <= read.keys()
    assert read_options(read) == read_options({}) == resolve(options.SparkReadOptions, {})
    assert write_options(written | {"path": "x"}) == write_options({"path": "x"})


ADDED = r"""
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder

class Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "amqpcodec.options":
            return None
        found = PathFinder.find_spec(name, path)
        with open(found.origin) as file:
            text = file.read()
        line = "class TrackingOptions(TypedDict, total=False):\n"
        new = 'shiny_new_bytes: Annotated[int, Option(Size(), 3 << 20, "what it does")]'
        assert line in text
        text = text.replace(line, f"{line}    {new}\n")
        found.loader.get_code = lambda name: compile(text, found.origin, "exec")
        return found

sys.meta_path.insert(0, Finder())
"""
SEEN = """
import inspect
from amqpcodec import arrow, capture, stats
for consumer in (capture.read_frames, arrow.read_capture, arrow.CaptureSession, stats.Collector):
    assert inspect.signature(consumer).parameters["shiny_new_bytes"].default == 3 << 20, consumer
    assert "shiny_new_bytes: what it does." in consumer.__doc__, consumer
from amqpcodec.cli import main
from amqpcodec.connection import ConnectionLimits
from amqpcodec.options import CaptureOptions
for command in (["decode"], ["convert"], ["stats"], ["spark", "convert"]):
    try:
        main([*command, "--help"])
    except SystemExit:
        pass
"""
SEEN_IN_SPARK = """
from amqpcodec.spark.options import read_options
from amqpcodec.spark import pcap_to_parquet
assert read_options({"shinyNewBytes": "5k"})["shiny_new_bytes"] == 5 << 10
assert inspect.signature(pcap_to_parquet).parameters["shiny_new_bytes"].default == 3 << 20
"""


def test_an_option_added_to_the_list_is_in_python_the_commands_and_spark() -> None:
    import importlib.util

    program = ADDED + SEEN + (SEEN_IN_SPARK if importlib.util.find_spec("pyspark") else "")
    finished = python("-c", program, impl=None)
    assert finished.returncode == 0, finished.stderr.decode()
    shown = " ".join(finished.stdout.decode().split())
    assert shown.count("--shiny-new-bytes BYTES what it does (default 3m)") == 4


def rows(page: str) -> list[tuple[str, ...]]:
    """The cells of the rows of all tables in a page of the documentation."""
    text = (DOCS / page).read_text(encoding="utf-8").replace(r"\|", "/")
    lines = re.findall(r"^\| (.*) \|$", text, re.MULTILINE)
    return [tuple(cell.strip() for cell in line.split(" | ")) for line in lines]


def test_every_command_has_a_page_that_is_compared() -> None:
    assert {*PAGES, "spark"} == set(SUBCOMMANDS)  # `spark` takes the options of sessions, compared below


@pytest.mark.parametrize("command", PAGES)
def test_the_documented_arguments_of_commands_are_those_declared(command: str) -> None:
    documented = {name for row in rows(PAGES[command]) for name in re.findall(r"`(--[a-z-]+)", row[0])}
    assert documented == of_command(command).keys()


def test_the_documented_arguments_of_sessions_are_those_declared() -> None:
    documented = {name for row in rows("spark.md") for name in re.findall(r"`--([a-z-]+)", row[0])}
    assert documented == declared(options.SessionOptions).keys()


def test_the_documented_options_of_columns_are_those_declared() -> None:
    known = declared(options.CaptureOptions) | declared(options.StreamOptions)
    known |= {"skip_incomplete": declared(options.EncodingOptions)["skip_incomplete"]}
    assert documented_defaults("columns.md", known) == known.keys()


def test_the_documented_options_of_spark_are_those_declared() -> None:
    pytest.importorskip("pyspark")
    from amqpcodec.spark.options import spark_name

    known = {spark_name(name): option for name, option in declared(options.SparkReadOptions).items()}
    found = documented_defaults("spark.md", known)
    assert found == known.keys() - {"paths", "minFileAge", "maxFilesPerTrigger"}
    listed = {name for row in rows("spark-tables.md") for name in re.findall(r"`(\w+)`", row[0])}
    assert listed >= {"minFileAge", "maxFilesPerTrigger", "output"}
    assert listed >= {spark_name(name) for name in declared(options.SparkWriteOptions)} - {"path"}


def documented_defaults(page: str, known: dict[str, Option]) -> set[str]:
    """The options that the tables of a page have; checks that the defaults beside them are those declared."""
    found = set()
    for first, *others in rows(page):
        names = [name for name in re.findall(r"`(\w+)`", first) if name in known]
        defaults = re.findall(r"`(\w[\w-]*)`", others[0]) if names else []
        found.update(names)
        for name, default in zip(names, defaults, strict=False):
            option = known[name]
            assert option.kind.parse(default.lower()) == option.check(option.default), name
    return found


@pytest.mark.parametrize(("limits", "page"), [(Limits, "reliability.md"), (ConnectionLimits, "codec.md")])
def test_the_limits_are_those_of_the_documentation(limits: type, page: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    told = {name: number for name, text in rows if (number := _number(text)) is not None}
    defaults = {name: each.default for name, each in inspect.signature(limits).parameters.items()}
    assert {name: told.get(name) for name in defaults} == defaults


def _number(text: str) -> float | None:
    """Return a number as the documentation writes it: 1 000, 2³² + 7, 512 MiB; None where there is none."""
    plain = (
        text.partition(",")[0].replace(" ", "").replace("2³²", str(1 << 32)).replace("\N{MINUS SIGN}", "+-")
    )
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(?:\+(-?\d+))?(MiB)?", plain)
    if found is None:
        return None
    return (float(found[1]) + int(found[2] or 0)) * (1 << 20 if found[3] else 1)


@pytest.mark.parametrize(
    ("seconds", "text"), [(1, "1s"), (90, "90s"), (120, "2m"), (3600, "1h"), (86400, "1d"), (0.5, "0.5s")]
)
def test_a_time_is_shown_in_the_largest_unit_of_which_it_is_a_multiple(seconds: float, text: str) -> None:
    assert Seconds().show(seconds) == text
