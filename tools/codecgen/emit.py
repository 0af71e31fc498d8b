"""The files that the generator writes: for this repository, or as a package for one foreign dialect.

Each dialect becomes a module of facts, and the text of its classes. The routines that read and write these
stand in a module of layouts for each build: one for all dialects of this repository, and one of its own for a
foreign dialect, with the routines that are not there.
"""

from __future__ import annotations

import keyword
from pathlib import Path

from codecgen.elements import SpecError
from codecgen.emit_facts import render_facts
from codecgen.emit_layouts_c import render_layouts_c
from codecgen.emit_layouts_py import render_layouts_py
from codecgen.emit_module import render_module
from codecgen.emit_namespace import render_index, render_namespace
from codecgen.emit_packaging import render_pyproject, render_setup
from codecgen.emit_peers import render_peers
from codecgen.emit_reply_codes import render_codes, render_reply_codes
from codecgen.emit_wire_types import render_c, render_python
from codecgen.layouts import Layout, layouts
from codecgen.load import load_project
from codecgen.model import Dialect, Source
from codecgen.output import MARKER
from codecgen.peers import Peer

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = "src/amqpcodec"
_GENERATED = '"""Dialects: classes, facts, and the routines that read and write them."""\n'
_PROTOCOL = '"""Tables of the protocol, which the kernel builds on."""\n'
_OF_WIRE_TYPES = f"{MARKER} from tools/codecgen/wire_types.py; do not edit.\n"


def render_project(dialects: list[Dialect], peers: list[Peer]) -> dict[str, str]:
    """Every generated file of this repository: text by path relative to its root."""
    sources = sorted({source for dialect in dialects for source in dialect.sources}, key=lambda s: s.path)
    generated, protocol = f"{_PACKAGE}/_generated", f"{_PACKAGE}/_protocol"
    files = {
        f"{generated}/__init__.py": header(sources) + _GENERATED,
        f"{protocol}/__init__.py": header(sources) + _PROTOCOL,
        f"{protocol}/codes.py": header(sources) + render_codes(dialects),
        f"{generated}/layouts_c.pyx": header(sources) + render_layouts_c(layouts(dialects)),
        f"{generated}/layouts_py.py": header(sources) + render_layouts_py(layouts(dialects)),
        f"{generated}/reply_codes.py": header(sources) + render_reply_codes(dialects),
        f"{protocol}/index.py": header(sources) + render_index(dialects),
        f"{protocol}/wire_types.py": _OF_WIRE_TYPES + render_python(),
        f"{protocol}/wire_types.pxd": _OF_WIRE_TYPES + render_c(),
    }
    for dialect in dialects:
        module = f"amqpcodec.{dialect.module}"
        target = f"amqpcodec._generated.{dialect.module}"
        for ending, text in _render_texts(dialect, module, target, "layouts").items():
            files[f"{generated}/{dialect.module}{ending}"] = text
        files[f"{_PACKAGE}/{dialect.module}.py"] = header(dialect.sources) + render_namespace(dialect, target)
    if peers:
        origins = sorted({source for peer in peers for source in peer.sources}, key=lambda s: s.path)
        files[f"{generated}/peers.py"] = header(origins) + render_peers(peers)
    return files


def render_package(dialect: Dialect, package_name: str) -> dict[str, str]:
    """A package for one dialect: text by path relative to the directory it is put in."""
    if not package_name.isidentifier() or keyword.iskeyword(package_name):
        raise SpecError(f"--package {package_name}: not a name that Python can import")
    if package_name == "amqpcodec":
        raise SpecError("--package amqpcodec: the name of the package that the generated one builds on")
    marked = header(dialect.sources)
    target = f"{package_name}.methods"
    texts = _render_texts(dialect, package_name, target, "methods_layouts")
    own, shared = _own_layouts(dialect), "amqpcodec._generated.layouts"
    return {
        f"{package_name}/__init__.py": marked + render_namespace(dialect, target),
        **{f"{package_name}/methods{ending}": text for ending, text in texts.items()},
        f"{package_name}/methods_layouts_c.pyx": marked + render_layouts_c(own, f"{shared}_c"),
        f"{package_name}/methods_layouts_py.py": marked + render_layouts_py(own, f"{shared}_py"),
        f"{package_name}/reply_codes.py": marked + render_reply_codes([dialect]),
        f"{package_name}/py.typed": "",
        "pyproject.toml": marked + render_pyproject(dialect, package_name),
        "setup.py": marked + render_setup(package_name),
    }


def _own_layouts(dialect: Dialect) -> list[Layout]:
    """Return the layouts of a foreign dialect that no dialect of this repository has."""
    known = {layout.name for layout in layouts(load_project(_ROOT))}
    return [layout for layout in layouts([dialect]) if layout.name not in known]


def _render_texts(dialect: Dialect, module: str, target: str, routines: str) -> dict[str, str]:
    """Return the texts of a dialect's module `module`, by the endings they add to the path `target`.

    `routines` is the name of the module with the routines of its layouts.
    """
    marked = header(dialect.sources)
    facts = f"{target}_facts"
    return {
        "_facts.py": marked + render_facts(dialect),
        "_py.py": marked + render_module(dialect, module, facts, routines),
    }


def header(sources: tuple[Source, ...] | list[Source]) -> str:
    """The comment that begins every generated file."""
    lines = [f"{MARKER}; do not edit. Made from:"]
    lines += [f"#   {source.path} sha256 {source.sha256}" for source in sources]
    return "\n".join(lines) + "\n"
