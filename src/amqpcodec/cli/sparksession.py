"""The session that commands of Spark work in, and the folder that they write."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from ..options import SessionOptions
from . import EXIT_OK, EXIT_UNUSABLE, output
from .options import add_own_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # in the environment of what spark-submit runs
# An error as Python prints it, or pyarrow, with the notes behind it, which begin in the first column as well.
_RAISED = re.compile(r"^[\w.]*(?:Error|Exception|Invalid): .*(?:\n\S.*)*", re.MULTILINE)


class NoSessionError(Exception):
    """There is no session; the text says why."""


def add_session_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe `SessionOptions`, of which one names a place to run."""
    add_own_options(parser.add_mutually_exclusive_group(), SessionOptions, without=("conf",))
    add_own_options(parser, SessionOptions, without=("master", "remote"), parse={"conf": pair})


def run_job(arguments: argparse.Namespace, write: Callable[[SparkSession], str]) -> int:
    """Have the folder written in a session.

    Args:
        arguments: those of the command.
        write: writes it and returns one line that describes it.

    Returns:
        The exit code.
    """
    try:
        with session(arguments) as spark:
            from pyspark.errors import PySparkException

            try:
                done = write(spark)
            except (PySparkException, ValueError) as error:
                output.complain(f"{arguments.out!r} was not written: {reason(error)}")
                return EXIT_UNUSABLE
    except NoSessionError as error:
        output.complain(str(error))
        return EXIT_UNUSABLE
    with output.blaming_output():
        sys.stdout.write(f"{arguments.out}: {done}\n")
    return EXIT_OK


@contextmanager
def session(arguments: argparse.Namespace) -> Iterator[SparkSession]:
    """A session as the arguments say; ended with the block. Spark shows its progress on a terminal.

    Raises:
        NoSessionError: there is none.
    """
    try:
        from pyspark.sql import SparkSession

        from ..spark.java import NoJavaError, local_java
    except ImportError as error:
        raise NoSessionError(f"{error}: pip install 'amqpcodec[spark-local]'") from error
    master, submitted = arguments.master, _SUBMITTED in os.environ
    if not (master or submitted or arguments.remote):
        master = "local[*]"
    builder: Any = SparkSession.builder.appName("amqpcodec")
    if arguments.remote:
        builder = builder.remote(arguments.remote)
    else:
        bar = str(sys.stderr.isatty()).lower()
        builder = builder.config("spark.ui.showConsoleProgress", bar)
        if master:
            builder = builder.master(master)
    for name, value in arguments.conf:
        builder = builder.config(name, value)
    with ExitStack() as stack:
        try:
            if master and master.startswith("local"):
                stack.enter_context(local_java())
                builder = builder.config("spark.ui.enabled", "false")
            made = builder.getOrCreate()
        except NoJavaError as error:
            raise NoSessionError(str(error)) from error
        stack.callback(made.stop)
        yield made


def pair(text: str) -> tuple[str, str]:
    """A name and a value.

    Raises:
        ValueError: there is no = between them.
    """
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"{text!r} is not NAME=VALUE")
    return name, value


def reason(error: Exception) -> str:
    """Return the reason of a failed job of Spark: the last error in the trace of a worker."""
    found = list(_RAISED.finditer(str(error)))
    return " ".join(found[-1][0].split("\n")) if found else str(error).partition("\n")[0]
