"""Compiled functions that stand in the place of a peer's Python functions, and counts of their calls.

They get arguments as the interpreter has them, without a tuple or dict made for the call, and hand the same on to
the function they stand for. In all else they look like that function: name, module, signature, text, how it is
pickled, and that it becomes a method of the instance it is looked up on.
"""

from types import FunctionType, MethodType

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject

from .._kernel.octets cimport u32
from .._kernel.slots.layout_c cimport call_by_vector
from .._kernel.wire cimport OVERHEAD

cdef extern from "Python.h":
    object PyObject_Vectorcall(
        object function, PyObject *const *arguments, size_t nargsf, PyObject *names
    )
    Py_ssize_t PyVectorcall_NARGS(size_t nargsf) noexcept


cdef class Counts:
    """Calls served by the fast path, and calls left to the peer's own functions by reason.

    Threads without a global lock may lose some: what is counted is for people to look at.
    """

    def __init__(self):
        self.declined = {}

    cdef int decline(self, str reason) except -1:
        """Count a call that was left to the peer."""
        self.declined[reason] = self.declined.get(reason, 0) + 1
        return 0

    def add(self, reason):
        """Count a call that Python code has left to the peer."""
        self.decline(reason)


cdef class FastFunction:

    def __call__(self, *arguments, **named):
        return self.original(*arguments, **named)  # who calls without vectorcall has packed them already

    def __get__(self, instance, owner):
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name):
        return getattr(self.original, name)

    def __reduce__(self):
        return self.original.__qualname__

    def __repr__(self):
        return f"<fast {self.original!r}>"

    @property
    def __class__(self):
        """Return the class that `isinstance` sees: to `inspect.isfunction` and `create_autospec` it is a function."""
        return FunctionType

    @property
    def __wrapped__(self):
        return self.original


cdef FastFunction fast_function(object original, fast_call call, object state):
    """A function in the place of `original`; `call` finds `state` in it."""
    cdef FastFunction made = FastFunction.__new__(FastFunction)
    made.vectorcall = call
    made.original = original
    made.state = state
    setattr(made, "__doc__", original.__doc__)  # the class has one, so `__getattr__` would not be asked
    return made


cdef object call_original(
    PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names
):
    """Call the peer's own function with the same arguments."""
    return PyObject_Vectorcall((<FastFunction>function).original, arguments, nargsf, names)


cdef Py_ssize_t count_of(size_t nargsf) noexcept:
    """How many arguments are given by position."""
    return PyVectorcall_NARGS(nargsf)


def frame_end(octets, Py_ssize_t begin):
    """Return the end of a frame by what its envelope says; 0 if not all of it is there.

    Args:
        octets: bytes, or a bytearray.
        begin: offset of the frame.
    """
    cdef Py_buffer there
    cdef Py_ssize_t end = 0
    PyObject_GetBuffer(octets, &there, PyBUF_SIMPLE)
    if there.len - begin >= OVERHEAD:
        end = begin + OVERHEAD + <Py_ssize_t>u32(<const unsigned char *>there.buf + begin + 3)
    if end > there.len:
        end = 0
    PyBuffer_Release(&there)
    return end


cdef FastFunction _some = FastFunction.__new__(FastFunction)
call_by_vector(FastFunction, <char *>&_some.vectorcall - <char *><PyObject *>_some)
