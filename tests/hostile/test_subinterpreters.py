"""Subinterpreters are served by the pure build: the compiled modules refuse to be loaded a second time.

docs/reliability.md has the reasons. What counts here: no crash, and no silence about the build in use.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest
from support.implementation import wanted
from support.subprocesses import python

PROGRAM = """
import sys
sys.path[:0] = {path!r}
import amqpcodec
from amqpcodec import rabbitmq as amqp
octets = amqp.encode_message(1, amqp.Basic.Publish("e", "k"), amqp.BasicProperties(headers=dict(a=[1])), b"x")
[message] = amqp.MessageDecoder().feed(octets)
assert message.properties.headers == dict(a=[1]), message
assert amqpcodec.IMPL == {impl!r}, amqpcodec.IMPL
"""
MAIN = """
import {module} as interpreters
run = getattr(interpreters, "run_string", None) or interpreters.exec
{first}
for turn in range(3):
    number = interpreters.create()
    failed = run(number, {program!r})
    assert not failed, failed
    interpreters.destroy(number)
    import amqpcodec
    assert amqpcodec.IMPL == {impl!r}
"""


def interpreters() -> str:
    """The module that makes subinterpreters, whose name changed over time."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return name
    pytest.skip("this Python has no subinterpreters")


@pytest.mark.parametrize("impl", wanted())
def test_a_subinterpreter_has_the_pure_build(impl: str) -> None:
    program = PROGRAM.format(path=[path for path in sys.path if path], impl="py")
    given: dict[str, Any] = {"module": interpreters(), "program": program, "impl": impl}
    main = MAIN.format(first="import amqpcodec.rabbitmq", **given)
    finished = python("-c", main, impl=None if impl == "c" else "py")
    assert finished.returncode == 0, finished.stderr.decode()
