"""``python -m suites [NAME...]``: fetch suites, run each without and with acceleration, print what differs.

The exit code is 1 if a test ended in another way, or if nothing was accelerated. Suites that need a broker
are given a RabbitMQ of their own, of the version that ``AMQPCODEC_BROKER`` names, and left out, with the
reason, where there is none. Tests that do not pass in either state are named as well.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from support.broker import CHOSEN, NoBrokerError, free_ports, started
from support.compat.seam import off, put_into

from .docker import docker
from .plugin import VARIABLE

ROOT = Path(__file__).resolve().parents[2]
SUITES = ROOT / "build" / "suites"
ATTEMPTS = 20  # for tests that end differently
ENOUGH = 5  # of these, if none of them differs
LEAST_FAST = 50  # calls that were served; every suite makes more
SETTINGS = """\
management.tcp.ip = 127.0.0.1
management.tcp.port = {web}
listeners.ssl.1 = 127.0.0.1:{secure}
ssl_options.cacertfile = {folder}/ca.pem
ssl_options.certfile = {folder}/server.pem
ssl_options.keyfile = {folder}/server.key
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false"""


Begin = Callable[[Path], AbstractContextManager[dict[str, int]]]


class Suite(NamedTuple):
    """Tests in a source distribution."""

    project: str
    version: str
    peers: str  # as AMQPCODEC_COMPAT takes them
    arguments: tuple[str, ...]  # of pytest
    live: bool = False
    seam: bool = False  # the library itself begins it, by the seam of the examples


class Result(NamedTuple):
    """One run of a suite."""

    outcomes: dict[str, list[str]]
    status: dict[str, Any]

    def count(self) -> str:
        """Such as ``870 passed, 3 skipped``."""
        counted = Counter(outcome.split()[1] for outcomes in self.outcomes.values() for outcome in outcomes)
        return ", ".join(f"{number} {what}" for what, number in sorted(counted.items()))

    def failed(self) -> set[str]:
        """Return the tests that failed, or could not be set up, torn down or collected."""
        return {test for test, outcomes in self.outcomes.items() if "failed" in " ".join(outcomes)}


PLAIN = ("-p", "no:aiomisc")  # which takes over logging
AMQP = (*PLAIN, "-o", "python_classes=test_*")
WITHOUT_BROKER = "--ignore=amqpstorm/tests/functional"
# Those of the HTTP interface, which is not AMQP, and those that bring certificates of a broker of their own.
OF_OTHERS = tuple(f"--ignore=amqpstorm/tests/functional/{each}" for each in ("management", "ssl"))
SHORT = ("-k", "not test_channel_reconnect_stairway")  # which waits for half a minute, 14 times
NAMES = {
    "pamqp": Suite("pamqp", "4.0.1", "pamqp", (*PLAIN, "tests")),
    "amqp": Suite("amqp", "5.4.2", "amqp", (*AMQP, "t/unit")),
    "amqpstorm": Suite("amqpstorm", "3.1.4", "pamqp", (*PLAIN, WITHOUT_BROKER, "amqpstorm/tests")),
    "rabbitpy": Suite("rabbitpy", "3.0.2", "pamqp", (*PLAIN, "--ignore=tests/test_integration.py", "tests")),
    "amqp live": Suite("amqp", "5.4.2", "amqp", (*AMQP, "-k", "not tls", "t/integration"), True),
    "rabbitpy live": Suite("rabbitpy", "3.0.2", "pamqp", (*PLAIN, "tests"), True),
    "aiormq live": Suite("aiormq", "7.2.4", "pamqp", ("-p", "suites.aiormq_broker", "tests"), True),
    "aio-pika live": Suite("aio-pika", "10.2.1", "pamqp", (*SHORT, "tests"), True),
    "amqpstorm live": Suite(
        "amqpstorm",
        "3.1.4",
        "pamqp",
        (*PLAIN, "-p", "suites.amqpstorm_broker", *OF_OTHERS, "amqpstorm/tests/functional"),
        True,
    ),
    "kombu live": Suite("kombu", "5.7.0", "amqp", (*AMQP, "t/integration/test_py_amqp.py"), True),
}
LOOPS = ("amqp", "amqp live", "kombu live")
NAMES |= {f"{name}, loops": NAMES[name]._replace(peers=NAMES[name].peers + "+loops") for name in LOOPS}
NAMES |= {f"{name}, seam": NAMES[name]._replace(seam=True) for name in ("pamqp", "amqp", "aiormq live")}


def fetched(suite: Suite) -> Path:
    """The folder of a suite's distribution, downloaded once."""
    sources = _apart("sources")
    name = f"{suite.project.replace('-', '_')}-{suite.version}"
    if not (sources / name).exists():
        with tempfile.TemporaryDirectory(dir=_made(SUITES)) as folder:
            # What builds the distribution's metadata may come as wheels.
            command = ["download", "-q", "--no-deps", "--no-binary", suite.project, "-d", folder]
            requirement = f"{suite.project}=={suite.version}"
            subprocess.run([sys.executable, "-m", "pip", *command, requirement], check=True)
            (archive,) = Path(folder).glob("*.tar.gz")
            with tarfile.open(archive) as file:
                file.extractall(folder, filter="data")
            shutil.move(Path(folder, name), sources / name)
    return sources / name


def with_seam(suite: Suite, source: Path) -> Path:
    """Copy a distribution, with the seam in its package."""
    copied = _apart("seams") / source.name
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(source, copied)
    put_into(next(each for each in (copied / suite.project, copied / "src" / suite.project) if each.exists()))
    return copied


def _apart(name: str) -> Path:
    """A folder of distributions, whose suites do not find our settings, further up, if they have none."""
    folder = _made(SUITES / name)
    (folder / "pytest.ini").touch()
    return folder


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def played(suite: Suite, source: Path, accelerated: bool, environment: dict[str, str]) -> Result:
    """Run it.

    Raises:
        RuntimeError: it did not come to its end; with what it printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        seamed = (source, source / "src") if suite.seam else ()
        variables = {
            **os.environ,
            **environment,
            VARIABLE: str(result),
            "PYTHONPATH": os.pathsep.join(map(str, (*seamed, ROOT / "tests"))),
            "AMQPCODEC_COMPAT": suite.peers if accelerated and not suite.seam else "",
            off(suite.project): "" if accelerated else "1",
        }
        command = [sys.executable, "-m", "amqpcodec.run", "-m", "pytest", "-q", "-p", "suites.plugin"]
        command += ["--rootdir=.", "-p", "no:cacheprovider", "-p", "no:xdist", *suite.arguments]
        done = subprocess.run(
            command, cwd=source, env=variables, capture_output=True, encoding="utf-8", check=False
        )
        if not result.exists():
            raise RuntimeError(f"{suite.project}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return Result(**json.loads(result.read_text(encoding="utf-8")))


@contextmanager
def surroundings(source: Path, begin: Begin) -> Iterator[dict[str, str]]:
    """Environment variables by which suites find a broker that has just been started."""
    with ExitStack() as stack:
        certificates = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if (brought := source / "tests" / "certs").exists():
            shutil.copytree(
                brought, certificates, dirs_exist_ok=True
            )  # a later RabbitMQ sees no other folder
        else:
            _certify(certificates)
        ports = stack.enter_context(begin(certificates))
        yield {
            "RABBITMQ_HOST": "127.0.0.1",
            **{f"RABBITMQ_{name.replace('/', '_').upper()}": str(port) for name, port in ports.items()},
            "RABBITMQ_URL": f"amqp://guest:guest@127.0.0.1:{ports['5672/tcp']}/%2F",
            "DOCKER_HOST": stack.enter_context(docker(ports)),
        }


@contextmanager
def rabbitmq(certificates: Path) -> Iterator[dict[str, int]]:
    """Start a RabbitMQ with a folder of certificates; gives its ports without and with TLS, and of HTTP."""
    secure, web = free_ports(2)
    settings = SETTINGS.format(secure=secure, web=web, folder=certificates)
    with started(settings=settings, plugins=("rabbitmq_management",)) as node:
        yield {"5672/tcp": node.port, "5671/tcp": secure, "15672/tcp": web}


def _certify(folder: Path) -> None:
    """Make a certificate that signs itself, for suites that bring none and verify none."""
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-days",
        "2",
    ]
    files = ["-keyout", str(folder / "server.key"), "-out", str(folder / "server.pem")]
    subprocess.run([*command, *files], capture_output=True, check=True)
    shutil.copy(folder / "server.pem", folder / "ca.pem")


def both(suite: Suite, source: Path) -> tuple[Result, Result]:
    """Run it without and, meanwhile, with acceleration, each at a broker of its own if it needs one."""
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        own = [stack.enter_context(surroundings(source, rabbitmq)) if suite.live else {} for _ in range(2)]
        without, with_ = pool.map(partial(played, suite, source), (False, True), own)
        return without, with_


def differing(without: list[Result], with_: list[Result]) -> list[str]:
    """The tests that ended with acceleration in a way in which they never ended without."""
    every = {test for result in (*without, *with_) for test in result.outcomes}
    return sorted(
        test
        for test in every
        if any(_outcome(test, result) not in [_outcome(test, other) for other in without] for result in with_)
    )


def _outcome(test: str, result: Result) -> list[str] | None:
    return result.outcomes.get(test)


def compared(name: str) -> tuple[str, int]:
    """A line for the table, and the number of faults."""
    suite = NAMES[name]
    source = with_seam(suite, fetched(suite)) if suite.seam else fetched(suite)
    without, with_ = repeated(suite, source)
    first, apart = differing(without[:1], with_[:1]), differing(without, with_)
    lasting = [test for test in differing(without, with_[1:]) if test in apart]
    for test in apart:
        ways = (sorted({str(_outcome(test, each)) for each in found}) for found in (without, with_))
        how = "" if test in lasting else ", once, and in each further run as without"
        print(f"{name}: {test}: {' or '.join(next(ways))} without, {' or '.join(next(ways))} with{how}")
    for test in sorted(without[0].failed() - set(apart)):
        print(f"{name}: {test}: fails as it is")
    faults = len(lasting) + _sleeping(name, with_[0])
    broker = os.environ.get(CHOSEN, "installed") if suite.live else ""
    counts = f"{without[0].count()} | {with_[0].count()} | {len(lasting)} | {len(first) - len(lasting)}"
    return f"| {name} | {suite.version} | {broker} | {counts} |", faults


def repeated(suite: Suite, source: Path) -> tuple[list[Result], list[Result]]:
    """Run it both ways; then, alone and until they have ended in the same ways, the tests that differed.

    Some depend on time, or on the order of addresses, and end now this way and now that.
    """
    without, with_ = ([result] for result in both(suite, source))
    apart = differing(without, with_)
    for _ in range(ATTEMPTS if apart else 0):
        again = both(suite._replace(arguments=(*_options(suite), *apart)), source)
        without.append(again[0])
        with_.append(again[1])
        apart = [test for test in differing(without, with_) if test in apart]
        if not apart or (len(with_) > ENOUGH and not differing(without, with_[1:])):
            break
    return without, with_


def _sleeping(name: str, result: Result) -> int:
    """Print which peers were not accelerated, or hardly; return their number."""
    faults = 0
    for peer in result.status or ("any",):
        found = result.status.get(peer, {"active": False, "why": "nothing was installed"})
        if not found["active"]:
            print(f"{name}: {peer} is not accelerated: {found['why']}")
            faults += 1
        elif found["fast"] < LEAST_FAST:
            print(f"{name}: {peer} has served {found['fast']} calls, which are too few")
            faults += 1
    return faults


def _options(suite: Suite) -> tuple[str, ...]:
    """The arguments but the last, which names the tests."""
    return suite.arguments[:-1]


def main(names: list[str]) -> int:
    """Run those suites, or all."""
    lines, faults = [], 0
    for name in names or NAMES:
        try:
            line, found = compared(name)
        except NoBrokerError as reason:
            line, found = f"| {name} | | | left out: {reason} | | | |", 0
        lines.append(line)
        faults += found
        print(line, flush=True)
    print("\n| suite | version | RabbitMQ | without | with | different | unsteady |")
    print("| --- | --- | --- | --- | --- | --- | --- |", *lines, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
