"""``python -m amqpcodec.run``: a program on accelerated peers, without an edit of it.

``AMQPCODEC_COMPAT=pamqp,amqp+loops python -m amqpcodec.run app.py arguments`` behaves as ``python app.py
arguments``, after `amqpcodec.compat.install` for each peer that the variable names; ``-m module`` instead of
a path behaves as ``python -m module``. A peer's name may be followed by the options of `install`: ``+loops``,
``+tolerant``. Without the variable nothing is replaced. Whatever cannot be replaced, the program begins: a
line on the standard error, or a warning, says what stays as it is. With ``--report`` before the program,
another line says at its end what was accelerated, and how many calls.
"""

from __future__ import annotations

import atexit
import io
import os
import pkgutil
import runpy
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType, TracebackType

VARIABLE = "AMQPCODEC_COMPAT"
OPTIONS = ("loops", "tolerant")
REPORT = "--report"
USAGE = f"usage: python -m amqpcodec.run [{REPORT}] [-m] program [arguments]"
HELP = f"""{USAGE}

Run a program as python does, with its AMQP library accelerated. {VARIABLE} names what decodes in it:

  pamqp      for aio-pika, aiormq, AMQPStorm and rabbitpy
  pika       for pika
  amqp       for kombu, Celery and py-amqp
  +loops     after pika or amqp: how they use sockets, too
  +tolerant  after a name: tables that cannot be read are delivered

What cannot be accelerated gets a line on the standard error, and the program begins none the less.
With {REPORT}, each process writes such a line at its end: which libraries were accelerated, how many of
their calls, and how many were left to them. A process that a signal kills writes none.
"""


def peers(text: str) -> tuple[dict[str, dict[str, bool]], list[str]]:
    """Read the variable.

    Args:
        text: such as ``"pamqp,amqp+loops"``.

    Returns:
        Options of `install` by the name of a peer, and in words what is passed over.
    """
    found: dict[str, dict[str, bool]] = {}
    faults: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        name, *options = part.split("+")
        for option in options:
            if option not in OPTIONS:
                faults.append(f"no option {option!r} in {part!r}; there are {', '.join(OPTIONS)}")
            elif name == "pamqp" and option == "loops":
                faults.append("loops changes nothing for pamqp: its clients use sockets, which it does not")
        if not name or name in found:
            faults.append(f"it names {name} twice" if name else f"it lacks a name in {part!r}")
        else:
            found[name] = {option: True for option in options if option in OPTIONS}
    return found, faults


def main(arguments: list[str]) -> None:
    """Install what the environment asks for, and become the program.

    Args:
        arguments: a path or ``-m`` and a module, and what the program finds in ``sys.argv`` behind its name;
            or ``--help``. ``--report`` may come first.
    """
    if arguments[:1] in (["-h"], ["--help"]):
        print(HELP, end="")
        return
    reports = arguments[:1] == [REPORT]
    if reports:
        del arguments[0]
    module = arguments[:1] == ["-m"]
    if len(arguments) < 1 + module:
        sys.exit(USAGE)
    _install(os.environ.get(VARIABLE, ""))
    if reports:
        atexit.register(_report)
    sys.argv[:] = arguments
    sys.excepthook = _Excepthook(sys.excepthook)
    # Ours stays alive beside the program's: functions that still run look up their names in it.
    program = sys.modules["__main__"] = ModuleType("__main__")
    vars(program)["__builtins__"] = sys.modules["builtins"]
    if sys.version_info < (3, 14):  # later ones make it when it is asked for
        vars(program)["__annotations__"] = {}
    if module:
        del sys.argv[1]
        sys.argv[0] = "-m"  # until the module is found, as Python has it
        _run_module(arguments[1], True)
    else:
        _become(arguments[0])


def _install(text: str) -> None:
    """Accelerate what the variable asks for. Where that cannot be, the program begins without."""
    if not text:
        return
    found, faults = peers(text)
    for name, options in found.items():
        try:
            from . import compat

            compat.install(name, **options)
        except Exception as error:
            faults.append(str(error) or type(error).__name__)
    for fault in faults:
        with suppress(Exception):  # there may be no standard error
            sys.stderr.write(f"{VARIABLE}={text}: {fault}\n")


def _report() -> None:
    """Say what has become of the libraries, at the end of the program."""
    from .compat import _report

    with suppress(Exception):  # there may be no standard error
        sys.stderr.write(f"{_report.line()}\n")


def _become(path: str) -> None:
    """Do what Python does for a path: a script, or a folder or archive with a ``__main__``."""
    packed = pkgutil.get_importer(path) is not None
    if not sys.flags.safe_path:
        del sys.path[0]
    path = os.path.abspath(path)
    if packed:
        sys.path.insert(0, path)
        _run_module("__main__", False)
        return
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    try:
        code = _code(path)
    except OSError as error:
        called = sys.orig_argv[0]  # which Python names; `sys.executable` may be another path to the same
        print(f"{called}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}", file=sys.stderr)
        sys.exit(2)
    main = sys.modules["__main__"]
    main.__file__ = path
    main.__loader__ = SourceFileLoader("__main__", path)
    vars(main)["__cached__"] = None
    exec(code, vars(main))


def _code(path: str) -> CodeType:
    with io.open_code(path) as file:
        compiled: CodeType | None = pkgutil.read_code(file)
    if compiled is not None:
        return compiled
    with io.open_code(path) as file:
        return compile(file.read(), path, "exec", dont_inherit=True)


# What the interpreter itself calls for -m. The public functions of runpy put a module of theirs into the
# place of `__main__` for the time of the run, and what the program leaves behind (threads, pickles) does not
# find it again.
_run_module: Callable[[str, bool], object] = runpy._run_module_as_main  # type: ignore[attr-defined]


class _Excepthook:
    """Prints tracebacks of the program without the frames that run it.

    Args:
        printing: the hook that prints them.
    """

    def __init__(self, printing: Callable[..., object]) -> None:
        self._printing = printing

    def __call__(self, kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        """Leave out the last frame of this module, and what is above it."""
        below = trace
        while below is not None:
            if below.tb_frame.f_code.co_filename == __file__:
                trace = below.tb_next
            below = below.tb_next
        self._printing(kind, value.with_traceback(trace), trace)


if __name__ == "__main__":
    main(sys.argv[1:])
