"""Instances made without their constructor, as `copy` makes them: none of their calls ends the process.

Private classes count too: an inspector or a debugger finds them by `gc.get_objects`.
"""

from __future__ import annotations

import pytest
from support.implementation import wanted
from support.subprocesses import python

PROGRAM = """
import os, pkgutil, sys, warnings
from importlib import import_module, util
from importlib.machinery import EXTENSION_SUFFIXES
import amqpcodec

ARGUMENTS = ((), (None,), (b"x",))
warnings.simplefilter("ignore")
made = 0
for found in pkgutil.walk_packages(amqpcodec.__path__, "amqpcodec.", onerror=lambda name: None):
    if not (util.find_spec(found.name).origin or "").endswith(tuple(EXTENSION_SUFFIXES)):
        continue
    module = import_module(found.name)
    for cls in list(vars(module).values()):
        if not isinstance(cls, type) or cls.__module__ != module.__name__:
            continue
        for name in dir(cls):
            for arguments in ARGUMENTS:
                os.write(2, f"{cls.__module__}.{cls.__qualname__}.{name}{arguments}\\n".encode())
                try:
                    bare = cls.__new__(cls)
                    made += 1
                    value = getattr(bare, name)
                    if callable(value) and not isinstance(value, type):
                        value(*arguments)
                except Exception:
                    pass
print(made)
"""


@pytest.mark.skipif("c" not in wanted(), reason="the classes of the pure build are Python's own")
def test_calls_of_bare_instances_do_not_end_the_process() -> None:
    done = python("-c", PROGRAM, impl="c")
    assert done.returncode == 0, (done.returncode, done.stderr.decode().splitlines()[-1:])
    assert int(done.stdout) > 1000
