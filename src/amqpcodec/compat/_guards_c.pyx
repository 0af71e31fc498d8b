"""Guards on classes and modules of other libraries: patches that somebody else makes later win.

The interpreter numbers the versions of a class, and of a module's dict. While the number is the one in which
nothing had changed, nothing has; otherwise the attributes that count are compared one by one, so that what
concerns none of them, or was put back (as mocks are), costs one comparison and no more.

What was replaced before a guard is made is no state to go by: such a guard is never unchanged, and says why.
"""

from types import (
    BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType,
)  # fmt: skip

from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject

cdef object _NOTHING = object()
cdef tuple _BUILT_IN = (BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType)
# Modules of the standard library whose classes other libraries have under names of their own.
cdef frozenset _STANDARD = frozenset(
    ("_io", "builtins", "collections", "datetime", "decimal", "io", "struct", "_struct")
)


cdef str _package(object name):
    return name.partition(".")[0] if isinstance(name, str) else ""


def is_own(found, str package):
    """Return whether what stands for a name is the library's own, rather than what somebody has put in its place.

    A function belongs where its globals are, which a wrapper cannot hide: `functools.wraps` copies the name of the
    module only. What is neither callable nor a descriptor counts as the library's own, and so does what `typing` makes.

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
    return not callable(found) or isinstance(found, _BUILT_IN) or type(found).__module__ == "typing"


cdef list _look_up(object cls, str name):
    """All that look-ups on the class may find before descriptors have their say, with the classes that have it: a
    method may call that of a base."""
    return [(base.__dict__[name], base) for base in cls.__mro__ if name in base.__dict__]


cdef list _found(object cls, str name):
    return [found for found, _ in _look_up(cls, name)]


cdef bint _same_objects(list some, list others) except -1:
    return len(some) == len(others) and all([one is other for one, other in zip(some, others)])


cdef class TypeGuard:
    """Return whether the attributes of these names are the ones that the class has now, and its bases."""

    def __cinit__(self, cls, names):
        self._cls = cls
        self._names = tuple(names)
        self._seen = [_found(cls, name) for name in self._names]
        self._version = NO_VERSION
        self.replaced = []
        for name in self._names:
            for found, base in _look_up(cls, name):
                if not is_own(found, _package(base.__module__)):
                    self.replaced.append(f"{base.__module__}.{base.__qualname__}.{name}")

    def expect(self, name, value):
        """Return the value that a name must have in its class, where that is not the one it has now."""
        self._seen[self._names.index(name)][:1] = [value]
        self._version = NO_VERSION

    cdef bint compare(self) except -1:
        cdef uint64_t version
        if self.replaced:
            return False
        getattr(self._cls, "__init__")  # a look-up gives a class that was changed its next number
        version = type_version(<PyObject *>self._cls)
        if not all([_same_objects(_found(self._cls, name), seen) for name, seen in zip(self._names, self._seen)]):
            return False
        if version != 0 and type_version(<PyObject *>self._cls) == version:
            self._version = version
        return True


cdef class ModuleGuard:
    """Return whether the names of a module, or keys of a dict, stand for what they stand for now.

    Args:
        module: a module, or a dict.
        names: names, or keys.
        where: the dotted name of a dict.
    """

    def __cinit__(self, module, names, str where=""):
        self._space = module if isinstance(module, dict) else vars(module)
        self._names = tuple(names)
        self._seen = [self._space.get(name, _NOTHING) for name in self._names]
        self._version = NO_VERSION
        self.replaced = []
        where = where or self._space["__name__"]
        for name, found in zip(self._names, self._seen):
            self.check(f"{where}.{name}", found)

    def check(self, str label, found):
        """Count on one more function: unless it is the library's own, nothing is unchanged any more."""
        if found is not _NOTHING and not is_own(found, _package(label)):
            self.replaced.append(label)

    def expect(self, name, value):
        """A name is about to get another value, which counts as the one it has now."""
        self._seen[self._names.index(name)] = value
        self._version = NO_VERSION

    cdef bint compare(self) except -1:
        cdef uint64_t version = dict_version(<PyObject *>self._space)
        cdef PyObject *found
        if self.replaced:
            return False
        for name, seen in zip(self._names, self._seen):
            found = PyDict_GetItemWithError(self._space, name)
            if found is not <PyObject *>seen and (found is not NULL or seen is not _NOTHING):
                return False
        if version != 0 and dict_version(<PyObject *>self._space) == version:
            self._version = version
        return True


cdef class Guards:
    """Many guards as one: they cost a comparison of numbers each, and no call.

    Args:
        modules: guards of modules and dicts.
        types: guards of classes.
    """

    def __cinit__(self, modules, types=()):
        self._of_modules, self._of_types = list(modules), list(types)
        if max(len(self._of_modules), len(self._of_types)) > MOST_GUARDED:
            raise ValueError(f"more than {MOST_GUARDED} guards")
        for at, module in enumerate(self._of_modules):
            self._spaces[at] = <PyObject *>(<ModuleGuard?>module)._space
            self._space_versions[at] = NO_VERSION
        for at, cls in enumerate(self._of_types):
            self._classes[at] = <PyObject *>(<TypeGuard?>cls)._cls
            self._class_versions[at] = NO_VERSION
        self._modules, self._types = len(self._of_modules), len(self._of_types)

    @property
    def replaced(self):
        """Return the names replaced before the guards were made, dotted."""
        return [name for guard in (*self._of_modules, *self._of_types) for name in guard.replaced]

    cdef bint compare(self) except -1:
        cdef ModuleGuard module
        cdef TypeGuard cls
        for at in range(self._modules):
            module = <ModuleGuard>self._of_modules[at]
            if not module.unchanged():
                return False
            self._space_versions[at] = module._version
        for at in range(self._types):
            cls = <TypeGuard>self._of_types[at]
            if not cls.unchanged():
                return False
            self._class_versions[at] = cls._version
        return True
