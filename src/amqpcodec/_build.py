"""Extension modules from this package's sources, for setup.py and for packages of foreign dialects.

A module of the compiled build is either its own `X_c.pyx`, or the text of `X_py.py` under the name `X_c`
with the types of `X_c.pxd`. The latter is put together in a folder of the build, never beside the
sources: a copied `X_c.py` there would be imported as if it were compiled.
"""

from __future__ import annotations

import ast
import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_TWIN = re.compile(r"^( *(?:from|import) +(?:amqpcodec\._kernel\.|\.)[\w.]+)_py\b", re.MULTILINE)
# Decorators of C classes: written in the .pxd, with all that concerns C, but heeded in the text only.
_DECORATED = re.compile(r"^((?:@cython\..*\n)+)cdef (class \w+)", re.MULTILINE)
# A base that C classes cannot have; they are registered as such.
_ABSTRACT = re.compile(r"^(class \w+)\(Mapping\[.*\]\):", re.MULTILINE)
# Short strings are lent to the writer: threads write the same ones, and counting them would hold those up.
_LENT = re.compile(r"\bwriter\.shortstr\((self\.\w+)")
# Texts of which a .pxd has the constants as C constants, and the functions as C functions.
_ALSO_IN_C = ("wire", "constants", "content_order", "tuples")
# For every module. A .pyx or .pxd that wants C's division says so itself: texts of both builds keep Python's.
_DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # annotations are for type checkers; the .pxd has the C types
    "auto_pickle": False,  # records say themselves how they are pickled
    "binding": False,  # calls are cheaper; docs/architecture.md says what it takes from inspect.signature
    "embedsignature": True,
    "embedsignature.format": "clinic",
    "emit_code_comments": False,  # the texts again, line by line: a third of the C
    "freethreading_compatible": True,  # docs/reliability.md says why that holds
}
# Where the inner loops are, -O3 pays. Elsewhere it takes up to three times as long as -O1, and buys one
# instruction in a hundred. Calls into libraries that make no detour save columns 2 to 3% of their time.
# The state machine of a connection is smaller by -O2 than by -O1, and quicker by 1%.
_FAST = ["-O3", "-fno-plt"]
_LEVELS = {
    "_kernel": _FAST,
    "slots": _FAST,
    "_columns": _FAST,
    "_peer_writer_c": _FAST,
    "connection": ["-O2", "-fno-plt"],
}
# Modules of these folders that have no inner loop either: they make classes, look after them, or hold facts.
_WITHOUT_LOOPS = (
    "constructors_c", "dialect_c", "lock_c", "rawproperties_c", "readers_c", "sharing_c", "tables_c",
)  # fmt: skip
_ELSEWHERE = ["-Os"]
# Points-to analysis is 40% of gcc's time in such modules, and makes them no smaller. Other passes pay:
# docs/architecture.md has what was measured.
_SPARED = "-fno-tree-pta"
# What Cython needs in every module, such as the reading of keywords: once for all modules of this package.
# Those of a foreign dialect are too few for that. Typed memoryviews are half of it, and no module has one.
_PACKAGE, _SHARED = "amqpcodec", "_cython_utility"
_NOT_SHARED = ["MemoryView"]
_COMPILE = ["-g0", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-cast-function-type"]


def extensions(
    package: str, *, source: Path = Path(), stage: Path = Path("build/cython"), **cython: Any
) -> list[Any]:
    """Every compiled module of a package, ready for `setup(ext_modules=...)`.

    Args:
        package: the package's name, such as ``"amqpcodec"``.
        source: the folder that holds the package.
        stage: folder to put Cython's sources together in.
        cython: further options of `cythonize`.
    """
    from Cython.Build import cythonize
    from Cython.Compiler import Options
    from setuptools import Extension

    for directive in ("collection_type", "final", "freelist", "no_gc"):
        # Cython lets only `cdef class` have these, by this table; the classes of our texts become such.
        Options.directive_scopes[directive] = ("class", "cclass")
    paths = _staged(source / package, source, stage)
    modules = [Extension(_module(path, stage), [str(path)], **_options(path)) for path in paths]
    shared: dict[str, Any] = {}
    if package == _PACKAGE:
        path = stage / package / f"{_SHARED}.c"
        modules.append(Extension(_module(path, stage), [str(path)], **_options(path)))
        shared["shared_utility_qualified_name"] = _module(path, stage)
        shared["shared_utility_features_disabled"] = _NOT_SHARED
    # Cython looks at sources alone: other directives would leave everything as it is.
    cython.setdefault("force", _put(stage / "directives.txt", repr((_DIRECTIVES, shared))) or None)
    with _processes() as count:
        return list(
            cythonize(  # type: ignore[no-untyped-call]
                modules,
                include_path=[str(stage), str(Path(__file__).parent.parent)],
                compiler_directives=_DIRECTIVES,
                nthreads=count,
                **shared,
                **cython,
            )
        )


@contextmanager
def _processes() -> Iterator[int]:
    """Yield how many processes Cython may use: one a core, where they can be forks; 0 for this one alone.

    A process that is not a fork would not have `Options.directive_scopes` as set above.
    """
    if sys.platform == "darwin" or "fork" not in multiprocessing.get_all_start_methods():
        yield 0
        return
    before = multiprocessing.get_start_method(allow_none=True)
    multiprocessing.set_start_method("fork", force=True)
    try:
        yield os.cpu_count() or 1
    finally:
        multiprocessing.set_start_method(before, force=True)


def _options(path: Path) -> dict[str, Any]:
    if os.name == "nt":
        return {}
    place = path.stem if path.stem in _LEVELS else path.parent.name
    level = _ELSEWHERE if path.stem in _WITHOUT_LOOPS else _LEVELS.get(place, _ELSEWHERE)
    spared = [_SPARED] if level is _ELSEWHERE and _is_known(_SPARED) else []
    return {"extra_compile_args": [*level, *spared, *_COMPILE]}


@cache
def _is_known(flag: str) -> bool:
    """Return whether the compiler knows a flag: clang warns about those of gcc that it lacks."""
    from setuptools._distutils.ccompiler import new_compiler
    from setuptools._distutils.sysconfig import customize_compiler

    compiler: Any = new_compiler()  # each system has a class of its own
    customize_compiler(compiler)
    with TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("int probe;\n", encoding="utf-8")
        command = [*compiler.compiler_so, "-Werror", flag, "-c", str(source), "-o", f"{source}.o"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _module(path: Path, stage: Path) -> str:
    return ".".join(path.relative_to(stage).with_suffix("").parts)


def _staged(root: Path, source: Path, stage: Path) -> list[Path]:
    """Lay out the sources of the compiled build under `stage`; those that make modules."""
    modules = []
    kept = {stage / root.name / f"{_SHARED}.c"}
    for path in sorted(root.rglob("*.p[xy][dx]")):
        target = stage / path.relative_to(source)
        kept.add(target)
        changed = _put(target, path.read_text(encoding="utf-8"))
        if path.suffix == ".pyx":
            modules.append(target)
        elif path.stem.endswith("_c") and not path.with_suffix(".pyx").exists():
            text = path.with_name(f"{path.stem.removesuffix('_c')}_py.py").read_text(encoding="utf-8")
            twin = target.with_suffix(".py")
            _put(twin, _compilable(text, path.read_text(encoding="utf-8")))
            if changed:
                twin.touch()  # Cython does not look at the .pxd beside a Python text
            modules.append(twin)
    kept.update(modules)
    for folder in {parent for path in modules for parent in path.parents if stage in parent.parents}:
        _put(folder / "__init__.py", "")
        kept.add(folder / "__init__.py")
    _prune(stage / root.relative_to(source), kept)
    _prune_modules(root)
    return modules


def _prune(folder: Path, kept: set[Path]) -> None:
    """Delete what was staged of sources that are gone: Cython would take it for what is there now."""
    made = {path.with_suffix(".c") for path in kept}
    for path in folder.rglob("*.*"):
        if path.is_file() and path not in kept | made:
            path.unlink()


def _prune_modules(root: Path) -> None:
    """Delete modules beside the sources whose sources are gone: they would still be imported."""
    for path in root.rglob("*_c.*"):
        source = path.with_name(path.name.partition(".")[0])
        there = source.with_suffix(".pyx").exists() or source.with_suffix(".pxd").exists()
        if path.suffix in (".so", ".pyd") and not there:
            path.unlink()


def _compilable(text: str, types: str) -> str:
    """A Python text as Cython is to see it, with the `.pxd` that gives it types."""
    lines = text.splitlines(keepends=True)
    for statement in reversed(list(_left_out(ast.parse(text)))):
        lines[statement.lineno - 1 : statement.end_lineno] = _instead(lines, statement)
    text = _ABSTRACT.sub(r"\1:", "".join(lines))
    text = _LENT.sub(r'writer.shortstr(cython.cast("_PyObject *", \1)', text)
    for decorators, head in _DECORATED.findall(types):
        text = re.sub(rf"^{head}\b", f"{decorators}{head}", text, flags=re.MULTILINE)
    if "cython." in text:
        text = text.replace("import annotations\n", "import annotations\n\nimport cython\n", 1)
    return _TWIN.sub(r"\1_c", text)


def _left_out(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements of a module and its classes that Cython is not to see."""
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
    holders: tuple[ast.Module | ast.ClassDef, ...] = (tree, *classes)
    for holder in holders:
        for node in holder.body:
            match node:
                case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=[]) | ast.If(test=ast.Name(id="PURE")):
                    yield node
                case ast.ImportFrom(level=1, module=module) if module in _ALSO_IN_C:
                    yield node
                case ast.AnnAssign(value=None) if holder is not tree:
                    # For type checkers; Cython would make it a C attribute.
                    yield node


def _instead(lines: list[str], statement: ast.stmt) -> list[str]:
    """Return the lines that stand under the `else:` of a statement, if it has one, as far left as that."""
    if not isinstance(statement, ast.If) or not statement.orelse:
        return []
    return [
        line.removeprefix("    ") for line in lines[statement.orelse[0].lineno - 1 : statement.end_lineno]
    ]


def _put(path: Path, text: str) -> bool:
    """Write a file unless it is there already; whether it was not."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True
