"""What is laid out for Cython, and what is left of sources that are gone."""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import dedent

import pytest

from amqpcodec import _build


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with one module of its own text and one of a Python text with types."""
    folder = tmp_path / "src" / "demo"
    folder.mkdir(parents=True)
    for name in ("own_c.pyx", "shared_py.py", "shared_c.pxd"):
        (folder / name).write_text("", encoding="utf-8")
    return folder


def staged(package: Path) -> set[str]:
    """Names of the modules that are to be compiled."""
    stage = package.parent.parent / "stage"
    return {path.name for path in _build._staged(package, package.parent, stage)}


def names(folder: Path) -> set[str]:
    """Names of what lies in a folder."""
    return {path.name for path in folder.iterdir()}


def test_each_module_is_staged_with_its_types(package: Path) -> None:
    assert staged(package) == {"own_c.pyx", "shared_c.py"}
    stage = package.parent.parent / "stage" / "demo"
    assert names(stage) == {"__init__.py", "own_c.pyx", "shared_c.py", "shared_c.pxd"}


def test_what_was_staged_of_deleted_sources_is_deleted(package: Path) -> None:
    staged(package)
    stage = package.parent.parent / "stage" / "demo"
    for name in ("own_c.c", "shared_c.c"):
        (stage / name).write_text("", encoding="utf-8")
    (package / "own_c.pyx").unlink()
    assert staged(package) == {"shared_c.py"}
    assert names(stage) == {"__init__.py", "shared_c.py", "shared_c.pxd", "shared_c.c"}


def test_a_text_that_became_python_leaves_no_second_one(package: Path) -> None:
    staged(package)
    (package / "own_c.pyx").rename(package / "own_c.pxd")
    (package / "own_py.py").write_text("", encoding="utf-8")
    assert staged(package) == {"own_c.py", "shared_c.py"}
    assert "own_c.pyx" not in names(package.parent.parent / "stage" / "demo")


@pytest.mark.parametrize("ending", [".cpython-311-x86_64-linux-gnu.so", ".cp311-win_amd64.pyd"])
def test_a_module_beside_deleted_sources_is_deleted(package: Path, ending: str) -> None:
    for name in ("own_c", "shared_c", "gone_c"):
        (package / f"{name}{ending}").write_text("", encoding="utf-8")
    staged(package)
    left = {name for name in names(package) if name.endswith(ending)}
    assert left == {f"own_c{ending}", f"shared_c{ending}"}


@pytest.mark.slow("compiles")
def test_texts_of_both_builds_keep_the_division_of_python(package: Path) -> None:
    """C's division drops the fraction, and rounds towards zero; modules of C alone may ask for it."""
    pytest.importorskip("Cython")
    (package / "shared_py.py").write_text("def half(number):\n    return number / 2\n", encoding="utf-8")
    (package / "shared_c.pxd").write_text("cpdef double half(int number)\n", encoding="utf-8")
    (package / "own_c.pyx").write_text(
        "# cython: cdivision=True\ndef half(int number):\n    return number / 2\n", encoding="utf-8"
    )
    stage = package.parent.parent / "stage"
    _build.extensions("demo", source=package.parent, stage=stage, quiet=True)
    assert "(((double)__pyx_v_number) / 2.0)" in (stage / "demo" / "shared_c.c").read_text(encoding="utf-8")
    assert "(((long)__pyx_v_number) / 2)" in (stage / "demo" / "own_c.c").read_text(encoding="utf-8")


def test_no_text_of_both_builds_asks_for_the_division_of_c() -> None:
    root = Path(__file__).parents[2] / "src" / "amqpcodec"
    shared = [path.with_name(f"{path.stem[:-2]}_py.py") for path in root.rglob("*_c.pxd")]
    texts = [path for path in shared if not path.with_name(f"{path.stem[:-3]}_c.pyx").exists()]
    assert len(texts) > 15
    asking = [path.name for path in texts if "cdivision" in path.read_text(encoding="utf-8")]
    assert asking == []


@pytest.mark.slow("compiles")
def test_other_directives_compile_everything_again(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sources are no newer then, which is all that Cython looks at."""
    pytest.importorskip("Cython")
    (package / "own_c.pyx").write_text("def half(int number):\n    return number // 2\n", encoding="utf-8")
    stage = package.parent.parent / "stage"
    made = stage / "demo" / "own_c.c"
    _build.extensions("demo", source=package.parent, stage=stage, quiet=True)
    assert "__Pyx_div_" in made.read_text(encoding="utf-8")
    monkeypatch.setitem(_build._DIRECTIVES, "cdivision", True)
    _build.extensions("demo", source=package.parent, stage=stage, quiet=True)
    assert "__Pyx_div_" not in made.read_text(encoding="utf-8")


def compilable(text: str, types: str = "") -> str:
    """A Python text as Cython sees it, without empty lines."""
    lines = _build._compilable(dedent(text), dedent(types)).splitlines()
    return "\n".join(line for line in lines if line.strip())


def test_imports_of_the_pure_build_become_those_of_the_compiled_one() -> None:
    text = """
        from .wire_py import A
        from amqpcodec._kernel.records_py import B
        import amqpcodec._kernel.stream_py as C
        from .plain import E
        """
    assert compilable(text).splitlines() == [
        "from .wire_c import A",
        "from amqpcodec._kernel.records_c import B",
        "import amqpcodec._kernel.stream_c as C",
        "from .plain import E",
    ]


def test_what_only_type_checkers_and_the_pure_build_read_is_left_out() -> None:
    text = """
        if TYPE_CHECKING:
            from typing import Literal
        if PURE:
            from .fast import fast
        class A:
            held: int  # by others
            said: dict[
                str, int
            ]
            kept: int = 1
            if TYPE_CHECKING:
                def f(self) -> int: ...

                def g(self) -> int: ...
            if PURE:
                h = fast
            def i(self):
                if PURE:
                    return 1
        """
    assert compilable(text) == dedent(
        """\
        class A:
            kept: int = 1
            def i(self):
                if PURE:
                    return 1"""
    )


def test_a_choice_between_two_texts_stays() -> None:
    text = "if TYPE_CHECKING:\n    A = int\nelse:\n    A = object"
    assert compilable(text) == text


def test_of_what_the_builds_do_in_two_ways_the_text_of_the_compiled_one_is_kept() -> None:
    text = """
        class A:
            if PURE:

                def f(self):
                    return 1

                def g(self):
                    return 2

            else:

                def f(self):
                    if self:
                        return 3

            def h(self):
                return 4
        """
    assert compilable(text) == dedent(
        """\
        class A:
            def f(self):
                if self:
                    return 3
            def h(self):
                return 4"""
    )


@pytest.mark.parametrize("module", ["wire", "content_order", "tuples"])
def test_numbers_that_the_types_bring_are_not_imported(module: str) -> None:
    text = f"from .{module} import (\n    A,\n    B,\n)\nfrom .other import C\nfrom ..{module} import D"
    assert compilable(text) == f"from .other import C\nfrom ..{module} import D"
    assert list(Path(_build.__file__).parent.glob(f"*/{module}.pxd"))


def test_numbers_of_a_text_become_those_of_c(package: Path) -> None:
    text = '"""Numbers."""\n\n# Sides.\nCLIENT = 0\nSERVER = 1\n'
    (package / "constants.py").write_text(text, encoding="utf-8")
    staged(package)
    types = package.parent.parent / "stage" / "demo" / "constants.pxd"
    assert types.read_text(encoding="utf-8") == "cdef enum:\n    CLIENT = 0\n    SERVER = 1\n"


def test_decorators_in_the_types_are_put_before_the_class() -> None:
    text = "from __future__ import annotations\nclass AB:\n    pass\nclass A(B):\n    pass\n"
    types = "@cython.final\n@cython.freelist(8)\ncdef class A(B):\n    pass\n"
    assert compilable(text, types).splitlines() == [
        "from __future__ import annotations", "import cython", "class AB:", "    pass", "@cython.final",
        "@cython.freelist(8)", "class A(B):", "    pass",
    ]  # fmt: skip


def test_a_class_of_c_has_no_abstract_base() -> None:
    assert compilable("class A(Mapping[str, Any]):\n    pass\n") == "class A:\n    pass"


def test_the_types_of_a_generated_dialect_follow_from_its_text(package: Path) -> None:
    text = """\
# Generated by tools/gen_codec.py; do not edit.
class _DialectMethod(_Method):
    __slots__ = ()
class Tune(_DialectMethod):
    __slots__ = ("reserved", "limit")
    def __init__(self, limit: int = 0, *, reserved: str = "") -> None:
        self.reserved = reserved
        self.limit = limit
class Bind(_DialectMethod):
    __slots__ = __match_args__ = ("arguments",)
    def __init__(self, arguments: _Mapping[str, _Any] | None = None) -> None:
        self.arguments = arguments
class TuneOk(_DialectMethod):
    __slots__ = __match_args__ = ()
    def __init__(self) -> None:
        pass
class Encoder(_Encoder):
    __slots__ = ()
"""
    (package / "own_c.pyx").unlink()
    (package / "own_py.py").write_text(text, encoding="utf-8")
    assert staged(package) == {"own_c.py", "shared_c.py"}
    stage = package.parent.parent / "stage" / "demo"
    types = (stage / "own_c.pxd").read_text(encoding="utf-8")
    assert [block for block in types.split("\n\n\n") if "class" in block] == [
        "cdef class _DialectMethod(_Method):\n    pass",
        "@cython.no_gc\ncdef class Tune(_DialectMethod):\n    cdef object reserved\n    cdef object limit",
        "cdef class Bind(_DialectMethod):\n    cdef object arguments",
        "cdef class TuneOk(_DialectMethod):\n    pass\n",
    ]
    assert "__init__" not in (stage / "own_c.py").read_text(encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="flags of gcc")
def test_a_flag_that_the_compiler_lacks_is_left_out() -> None:
    assert _build._is_known("-O2")
    assert not _build._is_known("-fno-such-pass")


@pytest.mark.slow("compiles")
def test_a_module_that_cannot_be_compiled_is_named(package: Path) -> None:
    errors = pytest.importorskip("Cython.Compiler.Errors")
    (package / "own_c.pyx").write_text("cdef int x = +\n", encoding="utf-8")
    with pytest.raises(errors.CompileError, match=r"demo/own_c\.pyx"):
        _build.extensions("demo", source=package.parent, stage=package.parent.parent / "stage", quiet=True)
