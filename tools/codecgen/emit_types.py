"""The `.pxd` of one dialect: the C types of its classes in the compiled build."""

from __future__ import annotations

from codecgen.code import Code
from codecgen.emit_records import METHOD_BASE, PROPERTIES_BASE
from codecgen.model import Class, Dialect, Field, Method


def render_types(dialect: Dialect) -> str:
    """The text of a dialect's `.pxd`."""
    code = Code()
    code.lines(
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
    code.lines("", "")
    with code.block(f"cdef class {method.python_name}({METHOD_BASE}):"):
        _emit_attributes(code, method.fields)
        code.line("cdef int _read(self, _Reader reader) except -1")
        code.line("cdef int _write(self, _Writer writer) except -1")
        if method.content:
            code.line("cdef bint _has_content(self) except -1")
            code.line("cdef int _class_id(self) except -1")


def _emit_properties(code: Code, cls: Class) -> None:
    code.lines("", "")
    with code.block(f"cdef class {cls.properties_name}({PROPERTIES_BASE}):"):
        _emit_attributes(code, cls.properties)
        code.line("cdef int _read(self, _Reader reader) except -1")
        code.line("cdef int _write(self, _Writer writer) except -1")
        code.line("cdef int _class_id(self) except -1")


def _emit_attributes(code: Code, fields: tuple[Field, ...]) -> None:
    for field in fields:
        code.line(f"cdef public object {field.attribute}")
