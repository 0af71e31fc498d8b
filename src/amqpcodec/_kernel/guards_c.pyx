"""Whether classes and modules of other libraries are still as they were: patches made later by somebody else win.

The interpreter numbers the versions of a class, and of a module's dict. While the number is the one last
looked at, nothing has changed; otherwise the attributes that count are compared one by one, so that what
concerns none of them, or was put back (as mocks are), costs one comparison and no more.

What was replaced before a guard is made is no state to go by: such a guard is never unchanged, and says why.
"""

from types import (
    BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType,
)  # fmt: skip

from cpython.object cimport PyObject

cdef object _NOTHING = object()
cdef tuple _BUILT_IN = (BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType)
# Modules of the standard library whose classes other libraries have under names of their own.
cdef frozenset _STANDARD = frozenset(("_io", "builtins", "datetime", "decimal", "io", "struct", "_struct"))


cdef str _package(object name):
    return name.partition(".")[0] if isinstance(name, str) else ""


def is_own(found, str package):
    """Whether what stands for a name is the library's own, rather than what somebody has put in its place.

    A function belongs where its globals are, which a wrapper cannot hide: `functools.wraps` copies the name of the
    module only. What is neither callable nor a descriptor counts as the library's own.

    Args:
        found: an attribute as it is in the dict of a module or class.
        package: the library.
    """
    if isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    elif isinstance(found, property):
        found = found.fget
    if type(found) is FunctionType:
        return _package(found.__globals__.get("__name__")) == package
    if isinstance(found, type):
        return _package(found.__module__) == package or _package(found.__module__) in _STANDARD
    return not callable(found) or isinstance(found, _BUILT_IN)


cdef list _look_up(object cls, str name):
    """All that look-ups on the class may find before descriptors have their say, with the classes that have it: a
    method may call that of a base."""
    return [(base.__dict__[name], base) for base in cls.__mro__ if name in base.__dict__]


cdef list _found(object cls, str name):
    return [found for found, _ in _look_up(cls, name)]


cdef bint _same_objects(list some, list others) except -1:
    return len(some) == len(others) and all([one is other for one, other in zip(some, others)])


cdef class TypeGuard:
    """Whether the attributes of these names are the ones that the class has now, and its bases."""

    def __cinit__(self, cls, names):
        self._cls = cls
        self._names = tuple(names)
        self._seen = [_found(cls, name) for name in self._names]
        self.replaced = []
        for name in self._names:
            for found, base in _look_up(cls, name):
                if not is_own(found, _package(base.__module__)):
                    self.replaced.append(f"{base.__module__}.{base.__qualname__}.{name}")

    def expect(self, name, value):
        """What a name has to stand for in the class that has it, if not for what it stands for now."""
        self._seen[self._names.index(name)][:1] = [value]
        self._tag = 0

    cdef bint compare(self) except -1:
        cdef unsigned int tag
        getattr(self._cls, "__init__")  # a look-up gives a class that was changed its next number
        tag = type_version(<PyObject *>self._cls)
        same = not self.replaced and all(
            [_same_objects(_found(self._cls, name), seen) for name, seen in zip(self._names, self._seen)]
        )
        self._tag = 0
        self._same = same
        if type_version(<PyObject *>self._cls) == tag:
            self._tag = tag
        return same


cdef class ModuleGuard:
    """Whether the names of a module, or keys of a dict, stand for what they stand for now.

    Args:
        module: a module, or a dict.
        names: names, or keys.
        where: the dotted name of a dict.
    """

    def __cinit__(self, module, names, str where=""):
        self._space = module if isinstance(module, dict) else vars(module)
        self._names = tuple(names)
        self._seen = [self._space.get(name, _NOTHING) for name in self._names]
        self.replaced = []
        where = where or self._space["__name__"]
        for name, found in zip(self._names, self._seen):
            self.check(f"{where}.{name}", found)

    def check(self, str label, found):
        """Count on one more function: unless it is the library's own, nothing is unchanged any more."""
        if found is not _NOTHING and not is_own(found, _package(label)):
            self.replaced.append(label)

    cdef bint compare(self) except -1:
        cdef uint64_t tag = dict_version(<PyObject *>self._space)
        same = not self.replaced and all(
            [self._space.get(name, _NOTHING) is seen for name, seen in zip(self._names, self._seen)]
        )
        self._tag = 0
        self._same = same
        if dict_version(<PyObject *>self._space) == tag:
            self._tag = tag
        return same

    def expect(self, name, value):
        """A name is about to get another value, which counts as the one it has now."""
        self._seen[self._names.index(name)] = value
        self._tag = 0
