"""The fixtures of pytest in test suites of other kinds: several processes, and coroutine functions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHARED = """
import os
from pathlib import Path

def test_the_broker_is_of_this_process(amqp_broker, amqp_broker_session):
    assert amqp_broker_session.port != amqp_broker.port
    amqp_broker_session.publish("", "none", b"", app_id=str(os.getpid()))
    Path(f"{os.getpid()}.port").write_text(str(amqp_broker_session.port))

def test_reset_empties_it(amqp_broker_session):
    amqp_broker_session.reset()
    assert amqp_broker_session.published() == amqp_broker_session.connections() == []
"""

COROUTINES = """
import pytest
from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import Client
from amqpcodec.testing import Broker

{preface}

{fixture}
async def broker():
    async with Broker() as broker:
        yield broker

async def use(broker):
    async with Client(broker.url) as client:
        await client.call(amqp.Queue.Declare(queue="q"))
        await (await client.channel()).publish(b"1", routing_key="q")
    broker.assert_queue("q", ready=[b"1"])
    broker.assert_published(body=b"1", count=1)

async def test_a_broker_on_a_thread(amqp_broker):
    await use(amqp_broker)

async def test_a_broker_of_this_loop(broker, amqp_broker):
    assert broker.port != amqp_broker.port
    await use(broker)
    assert amqp_broker.published() == []
"""

OPTIONS = """
import pytest

@pytest.fixture(scope="session", params=["3.10", "4.3"])
def amqp_broker_options(request):
    return {"like": request.param}

def test_both_brokers_have_them(amqp_broker, amqp_broker_session, amqp_broker_options):
    told = {"3.10": "3.13.0", "4.3": "4.3.6"}[amqp_broker_options["like"]]
    assert amqp_broker.version.told == amqp_broker_session.version.told == told
"""

STRICT = COROUTINES.format(
    preface="import pytest_asyncio\npytestmark = pytest.mark.asyncio", fixture="@pytest_asyncio.fixture"
)
PLAIN = COROUTINES.format(preface="", fixture="@pytest.fixture")
ANYIO = COROUTINES.format(
    preface="""pytestmark = pytest.mark.anyio

@pytest.fixture
def anyio_backend():
    return "asyncio"
""",
    fixture="@pytest.fixture",
)


def passed(folder: Path, tests: list[str], *options: str) -> str:
    """Run tests in a folder, each of which is a file, with no plugins but ours and those named."""
    for number, test in enumerate(tests):
        (folder / f"test_{number}.py").write_text(test, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "pytest_amqpcodec", *options], cwd=folder,
        capture_output=True, encoding="utf-8", check=False,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p no:cacheprovider"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow("starts processes of pytest")
def test_each_process_of_xdist_has_a_broker_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    output = passed(tmp_path, [SHARED] * 4, "-p", "xdist.plugin", "-n", "2", "--dist", "loadfile")
    assert "8 passed" in output
    ports = [path.read_text(encoding="utf-8") for path in tmp_path.glob("*.port")]
    assert len(ports) == len(set(ports)) == 2


def test_options_of_a_suite_are_those_of_its_brokers(tmp_path: Path) -> None:
    assert "2 passed" in passed(tmp_path, [OPTIONS])


@pytest.mark.parametrize(("mode", "test"), [("strict", STRICT), ("auto", PLAIN)])
def test_coroutine_functions_of_pytest_asyncio_use_it(tmp_path: Path, mode: str, test: str) -> None:
    pytest.importorskip("pytest_asyncio")
    options = [f"--asyncio-mode={mode}", "-o", "asyncio_default_fixture_loop_scope=function"]
    assert "2 passed" in passed(tmp_path, [test], "-p", "pytest_asyncio.plugin", *options)


def test_coroutine_functions_of_anyio_use_it(tmp_path: Path) -> None:
    pytest.importorskip("anyio")
    assert "2 passed" in passed(tmp_path, [ANYIO], "-p", "anyio")
