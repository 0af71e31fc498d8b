"""The `.pxd` of one dialect: the C types of its classes in the compiled build."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from codecgen.code import Code
from codecgen.emit_records import METHOD_BASE, PROPERTIES_BASE
from codecgen.layout import word_name, words
from codecgen.model import Class, Dialect, Field, Method
from codecgen.wire_types import WIRE_TYPES

_READ = "cdef int _read(self, _Reader reader) except -1"
_WRITE = "cdef int _write(self, _Writer writer) except -1"


def render_types(dialect: Dialect) -> str:
    """The text of a dialect's `.pxd`."""
    code = Code()
    code.lines(
        "cimport cython",
        "from cpython.object cimport PyObject as _PyObject",
        "",
        "from amqpcodec._kernel.encoder_c cimport Encoder as _Encoder",
        "from amqpcodec._kernel.frames_c cimport FrameDecoder as _FrameDecoder",
        "from amqpcodec._kernel.messages_c cimport MessageDecoder as _MessageDecoder",
        "from amqpcodec._kernel.reader_c cimport Reader as _Reader",
        "from amqpcodec._kernel.records_c cimport Method as _Method, Properties as _Properties",
        "from amqpcodec._kernel.writer_c cimport Writer as _Writer",
    )
    for base, parent in ((METHOD_BASE, "_Method"), (PROPERTIES_BASE, "_Properties")):
        code.lines("", "")
        with code.block(f"cdef class {base}({parent}):"):
            code.line("cdef object _dialect(self)")
    for method in dialect.methods:
        _emit_method(code, method)
    for cls in dialect.content_classes:
        _emit_properties(code, cls)
    for name in ("FrameDecoder", "MessageDecoder", "Encoder"):
        # Subclasses in C too: a Python subclass would be iterated through a look-up of __next__ each time.
        code.lines("", "", f"cdef class {name}(_{name}):", "    pass")
    return code.text()


def _emit_method(code: Code, method: Method) -> None:
    local = ["bits"] if any(field.type == "bit" for field in method.fields) else []
    with _class_block(code, method.python_name, METHOD_BASE, method.fields):
        _emit_routines(code, local, [])
        if method.content:
            code.line("cdef bint _has_content(self) except -1")
            code.line("cdef int _class_id(self) except -1")


def _emit_properties(code: Code, cls: Class) -> None:
    local = [word_name(index) for index in range(words(cls.properties))]
    with _class_block(code, cls.properties_name, PROPERTIES_BASE, cls.properties):
        _emit_routines(code, local, local)
        code.line("cdef int _class_id(self) except -1")


@contextmanager
def _class_block(code: Code, name: str, base: str, fields: tuple[Field, ...]) -> Iterator[None]:
    code.lines("", "")
    if fields and not any(WIRE_TYPES[field.type].holds_others for field in fields):
        code.line("@cython.no_gc")
    with code.block(f"cdef class {name}({base}):"):
        for field in fields:
            code.line(f"cdef object {field.attribute}")
        yield


def _emit_routines(code: Code, reading: list[str], writing: list[str]) -> None:
    """The two routines, with those of their local names that are C numbers."""
    for definition, names in ((_READ, reading), (_WRITE, writing)):
        if names:
            code.line(f"@cython.locals({', '.join(f'{name}=cython.int' for name in names)})")
        code.line(definition)
