"""``python -m amqpcodec.run`` in the place of ``python``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest
from support.marks import posix, replaces

from amqpcodec import IMPL
from amqpcodec.run import VARIABLE, peers

SHOWN = """\
import sys
print(sorted(globals()), __name__, __file__, __package__, __spec__ and __spec__.name, __doc__)
print(sys.argv, sys.path[0], sys.modules["__main__"].__dict__ is globals())
"""
PROGRAMS = {
    "shown.py": SHOWN,
    "raising.py": "def divide():\n    1 / 0\n\n\ndivide()\n",
    "broken.py": "x = (\n",
    "interrupted.py": "raise KeyboardInterrupt\n",
    "leaving.py": "import sys\nsys.exit('no')\n",
    "status.py": "raise SystemExit(7)\n",
    "hooked.py": "import sys\nsys.excepthook = lambda kind, *_: print('hook', kind)\nraise ValueError\n",
    "threaded.py": "import threading, time\n"
    "class Late: pass\n"
    "def late():\n    time.sleep(0.1); import __main__; print(__main__.Late is Late)\n"
    "threading.Thread(target=late).start()\n",
    "pickled.py": "import pickle\nclass M: pass\nprint(type(pickle.loads(pickle.dumps(M()))) is M)\n",
    "package/__init__.py": "",
    "package/__main__.py": SHOWN,
    "package/raising.py": "1 / 0\n",
    "folder/__main__.py": SHOWN,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for name, text in PROGRAMS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    zipapp.create_archive(folder / "folder", folder / "archive.pyz")
    return folder


def run(
    folder: Path, *arguments: str, wanted: str = "", python: str = sys.executable
) -> tuple[int, str, str]:
    done = subprocess.run(
        [python, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), VARIABLE: wanted},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        *((name,) for name in PROGRAMS if "/" not in name),
        ("shown.py", "-m", "--flag", "word"),
        ("folder", "word"),
        ("archive.pyz", "word"),
        ("-m", "package", "word"),
        ("-m", "package.raising"),
        ("-m", "shown", "-m", "word"),
        ("-m", "missing_module"),
        ("missing.py",),
    ],
    ids=" ".join,
)
def test_a_program_runs_as_it_does_without(folder: Path, arguments: tuple[str, ...]) -> None:
    assert run(folder, "-m", "amqpcodec.run", *arguments) == run(folder, *arguments)


def test_a_program_that_is_missing_is_told_of_by_the_name_that_python_was_called_by(folder: Path) -> None:
    at = Path(sys.executable)
    python = os.path.join(at.parent, os.pardir, at.parent.name, at.name)
    found = run(folder, "-m", "amqpcodec.run", "missing.py", python=python)
    assert found == run(folder, "missing.py", python=python)
    assert found[2].startswith(f"{python}: can't open file ")


def test_the_folder_of_a_program_is_not_imported_from_where_python_must_not(folder: Path) -> None:
    for name in ("shown.py", "folder"):
        assert run(folder, "-P", "-m", "amqpcodec.run", name) == run(folder, "-P", name)


@pytest.mark.parametrize("arguments", [(), ("-m",), ("--report",)])
def test_without_a_program_it_says_how_it_is_called(folder: Path, arguments: tuple[str, ...]) -> None:
    status, _, errors = run(folder, "-m", "amqpcodec.run", *arguments)
    assert status != 0
    assert errors == "usage: python -m amqpcodec.run [--report] [-m] program [arguments]\n"


@pytest.mark.parametrize("argument", ["-h", "--help"])
def test_asked_for_help_it_names_the_variable_the_peers_and_their_options(
    folder: Path, argument: str
) -> None:
    status, printed, errors = run(folder, "-m", "amqpcodec.run", argument, wanted="pamqp")
    assert (status, errors) == (0, "")
    for part in (
        "usage: python -m amqpcodec.run",
        VARIABLE,
        "pamqp",
        "pika",
        "amqp ",
        "+loops",
        "+tolerant",
        "--report",
    ):
        assert part in printed


def test_peers_are_named_with_their_options() -> None:
    assert peers("") == ({}, [])
    assert peers("pamqp") == ({"pamqp": {}}, [])
    found = {"pika": {"loops": True}, "pamqp": {}, "amqp": {"loops": True, "tolerant": True}}
    assert peers(" pika+loops , pamqp,amqp+loops+tolerant,") == (found, [])
    found, faults = peers("pika+force+loops,pika,pamqp")
    assert found == {"pika": {"loops": True}, "pamqp": {}}
    assert faults == [
        "no option 'force' in 'pika+force+loops'; there are loops, tolerant",
        "it names pika twice",
    ]


PASSED_OVER = {
    "pamqp+force": "no option 'force' in 'pamqp+force'; there are loops, tolerant",
    "pamqp,pamqp": "it names pamqp twice",
    "+loops": "it lacks a name in '+loops'",
    "pamqp+loops": "loops changes nothing for pamqp: its clients use sockets, which it does not",
    "nobody": "no fast path for 'nobody'; there are pamqp, pika, amqp",
}


@pytest.mark.parametrize("text", PASSED_OVER)
def test_what_the_variable_cannot_mean_is_said_and_the_program_begins(folder: Path, text: str) -> None:
    status, printed, errors = run(folder, "-m", "amqpcodec.run", "shown.py", wanted=text)
    assert (status, printed) == run(folder, "shown.py")[:2]
    assert f"{VARIABLE}={text}: {PASSED_OVER[text]}" in errors.splitlines()


FAILING = """
import sys, runpy, amqpcodec.compat
def failing(*given, **options):
    raise OSError("no such luck")
amqpcodec.compat.install = failing
if sys.argv.pop(1) == "closed":
    sys.stderr = None
sys.argv[0] = "amqpcodec.run"
runpy.run_module("amqpcodec.run", run_name="__main__")
"""


@pytest.mark.parametrize("errors", ["open", "closed"])
def test_a_program_begins_whatever_goes_wrong_before(folder: Path, errors: str) -> None:
    (folder / "failing.py").write_text(FAILING, encoding="utf-8")
    (folder / "begun.py").write_text("print('begun')\n", encoding="utf-8")
    status, printed, said = run(folder, "failing.py", errors, "begun.py", wanted="pamqp")
    assert (status, printed) == (0, "begun\n")
    assert said == (f"{VARIABLE}=pamqp: no such luck\n" if errors == "open" else "")


def test_what_is_named_is_replaced_before_the_program_begins(folder: Path) -> None:
    program = "from amqpcodec.compat import status; print(status()['pamqp'].wanted, status()['pika'].wanted)"
    (folder / "asking.py").write_text(program, encoding="utf-8")
    asked = run(folder, "-m", "amqpcodec.run", "asking.py", wanted="pamqp")
    assert asked[:2] == (0, "True False\n")
    assert asked[2].count("pamqp is not accelerated") == (IMPL != "c")  # the pure build warns


REPORTED = """
import os, sys
import pamqp.frame
ack = bytes.fromhex("01 0001 0000000d 003c0050 0000000000000005 00 ce")
for octets in (ack, ack, bytes.fromhex("01 0001 00000004 00ff000b ce")):
    try:
        pamqp.frame.unmarshal(octets)
    except pamqp.exceptions.UnmarshalingException:
        pass
if sys.argv[1:]:
    child = os.fork()
    sys.stdout.write(f"{os.getpid()} ")
    sys.stdout.flush()
    if child:
        os.waitpid(child, 0)
"""


@replaces
def test_asked_for_a_report_a_program_says_at_its_end_what_was_accelerated(folder: Path) -> None:
    (folder / "reported.py").write_text(REPORTED, encoding="utf-8")
    arguments = ("-m", "amqpcodec.run", "--report", "reported.py")
    status, _, errors = run(folder, *arguments, wanted="pamqp,amqp+loops")
    assert status == 0
    [line] = errors.splitlines()
    found = re.fullmatch(
        r"amqpcodec, process \d+: pamqp [\d.]+ active, (\d+) of (\d+) functions replaced, (\d+) calls fast, "
        r"(\d+) fell back, mostly for pamqp\.frame\.unmarshal: unknown method; "
        r"amqp\+loops [\d.]+ not active: never imported",
        line,
    )
    assert found is not None, line
    replaced, there, fast, fell_back = map(int, found.groups())
    assert 0 < replaced < there
    assert (fast, fell_back) == (2, 1)


@posix
@replaces
def test_each_process_of_a_program_reports(folder: Path) -> None:
    (folder / "reported.py").write_text(REPORTED, encoding="utf-8")
    _, printed, errors = run(
        folder, "-m", "amqpcodec.run", "--report", "reported.py", "forks", wanted="pamqp"
    )
    assert {line.split(":")[0] for line in errors.splitlines()} == {
        f"amqpcodec, process {process}" for process in printed.split()
    }


def test_a_report_says_where_nothing_is_to_be_accelerated(folder: Path) -> None:
    status, printed, errors = run(folder, "-m", "amqpcodec.run", "--report", "shown.py")
    assert (status, printed) == run(folder, "shown.py")[:2]
    assert re.fullmatch(r"amqpcodec, process \d+: no library is to be accelerated\n", errors)
