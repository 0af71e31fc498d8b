"""Files that make the package of a foreign dialect one that pip can compile and install."""

from __future__ import annotations

import runpy
from pathlib import Path

from codecgen.code import Code, string
from codecgen.elements import SpecError
from codecgen.model import Dialect

_SETUP = """\
import os
import site
import sys
import sysconfig

from setuptools import setup


def compiled():
    # pip builds in an environment of its own, while amqpcodec is in the one that pip was called in.
    path = sys.path[:]
    for folder in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()):
        site.addsitedir(folder)
    try:
        from amqpcodec._build import extensions
    except ModuleNotFoundError as error:
        raise SystemExit("install amqpcodec first: this package is compiled against it") from error
    finally:
        sys.path[:] = path
    return extensions({name})


setup(ext_modules=[] if os.environ.get("AMQPCODEC_BUILD") == "skip" else compiled())
"""
_VERSION = Path(__file__).resolve().parents[2] / "src" / "amqpcodec" / "_version.py"


def render_setup(package_name: str) -> str:
    """The setup.py, which compiles the package against the installed amqpcodec."""
    code = Code()
    code.docstring([f"Compiles {package_name}. With AMQPCODEC_BUILD=skip only its pure build is installed."])
    code.lines("", *_SETUP.format(name=string(package_name)).splitlines())
    return code.text()


def render_pyproject(dialect: Dialect, package_name: str) -> str:
    """The pyproject.toml.

    The package uses private modules of amqpcodec, so it requires the very version that generated it. That is
    no requirement of the build: the package is compiled against the amqpcodec that is installed, since their
    C structs have to agree, and that one may be on no package index.

    Raises:
        SpecError: no name of a project can be made of the package's.
    """
    project = package_name.strip("_")
    if not (project and project.isascii()):
        raise SpecError(f"--package {package_name}: no name that pip can install can be made of it")
    needed = string(f"amqpcodec=={runpy.run_path(str(_VERSION))['__version__']}")
    numbers = [dialect.major, dialect.minor, *([] if dialect.revision is None else [dialect.revision])]
    code = Code()
    code.lines(
        "[build-system]",
        'requires = ["setuptools>=77", "cython>=3.3"]',
        'build-backend = "setuptools.build_meta"',
        "",
        "[project]",
        f"name = {string(project)}",
        f"version = {string('.'.join(map(str, numbers)))}",
        'requires-python = ">=3.11"',
        f"dependencies = [{needed}]",
        "",
        "[tool.setuptools]",
        f"packages = [{string(package_name)}]",
        "",
        "[tool.setuptools.package-data]",
        f'{package_name} = ["py.typed", "*.pyx"]',
    )
    return code.text()
