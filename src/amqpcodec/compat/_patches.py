"""Replacements in other libraries: when they are made, and how they are undone."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from threading import RLock, local
from types import FunctionType, MappingProxyType, ModuleType
from weakref import WeakSet

from .._typing import TYPE_CHECKING, Any, NamedTuple
from ._relied import Known

if TYPE_CHECKING:
    from ._fast_c import Counts

_MISSING = object()
_LOCK = RLock()
# Replacements that somebody else's patch hides, and what they stand for: patches may be undone in any order.
_hidden: list[tuple[Patch, Any]] = []
_said: set[str] = set()  # the texts of warnings
# Modules whose execution has ended, though their import may not have.
_executed: WeakSet[ModuleType] = WeakSet()


@contextmanager
def locked() -> Iterator[None]:
    """Only one thread at a time replaces anything or puts it back."""
    with _LOCK:
        yield
    WATCH.settle()


def warn_once(text: str) -> None:
    """Warn of something, once in a process."""
    if text in _said:
        return
    _said.add(text)
    with suppress(Warning):  # a program that makes warnings errors still starts
        warnings.warn(text, RuntimeWarning, stacklevel=5)


def warn_pure(name: str) -> None:
    """Warn that the pure build does not accelerate a library."""
    warn_once(
        f"{name} is not accelerated: amqpcodec is not compiled here (amqpcodec.IMPL is 'py'),"
        " and its pure build replaces nothing"
    )


class Options(NamedTuple):
    """The options of an `install`, and what it meets.

    Attributes:
        known: of the library.
        loops: use sockets in another way as well.
        tolerant: have tables that cannot be read delivered, and nothing hang or recurse without bound.
    """

    known: Known
    loops: bool = False
    tolerant: bool = False


class Patch(NamedTuple):
    """One attribute, or entry of a dict, and what it becomes.

    Attributes:
        owner: a module, a class, a function or a dict.
        name: the attribute, or the key.
        replacement: what takes its place.
        label: how `Status` names it, if not by module, class and attribute.
    """

    owner: Any
    name: Any
    replacement: Any
    label: str = ""


class PatchPlan(NamedTuple):
    """All that is to be replaced in one library.

    Attributes:
        patches: in the order in which they are made.
        counts: calls served and declined.
        stock: classes that stay as they are, with the reason.
        undo: puts back what is no attribute.
        constructors: classes whose calls are served.
    """

    patches: Sequence[Patch]
    counts: Counts
    stock: Mapping[str, str] = MappingProxyType({})
    undo: Callable[[], object] | None = None
    constructors: Sequence[type] = ()


class PatchTarget:
    """Modules of a library, and what is replaced once all of them are imported.

    Args:
        modules: their names.
        make: the plan; it may import further modules.
    """

    def __init__(self, modules: Sequence[str], make: Callable[[], PatchPlan]) -> None:
        self.modules = tuple(modules)
        self.plan: PatchPlan | None = None
        self.fault = ""
        self._make = make
        self._before: list[tuple[Patch, Any]] = []

    @property
    def waiting_for(self) -> tuple[str, ...]:
        """The modules that are not imported yet."""
        return tuple(name for name in self.modules if not _is_imported(name))

    def apply(self) -> None:
        """Replace, unless that is done or a module is missing. What goes wrong leaves the library alone."""
        if self.plan is not None or self.fault or self.waiting_for:
            return
        put_back_hidden()
        try:
            plan = self._make()
            self.plan = plan
            for patch in plan.patches:
                self._before.append((patch, _put(patch.owner, patch.name, patch.replacement)))
        except Exception as error:
            self.revert()
            self.fault = f"{type(error).__name__}: {error}"
            with suppress(Warning):  # a program that makes warnings errors still imports the library
                warnings.warn(f"{self.modules[0]} stays as it is: {self.fault}", RuntimeWarning, stacklevel=2)
        except BaseException:
            self.revert()
            raise

    def is_intact(self) -> bool:
        """Return whether everything is replaced as planned, or the library is not imported yet."""
        if self.plan is None:
            return not self.fault
        return all(_held(patch.owner, patch.name) is patch.replacement for patch, _ in self._before)

    def revert(self) -> None:
        """Put back what was there before, but for what somebody else has replaced since."""
        while self._before:
            patch, before = self._before.pop()
            if _held(patch.owner, patch.name) is patch.replacement:
                _put(patch.owner, patch.name, before)
            elif not isinstance(patch.replacement, int):  # which cannot be distinguished from another
                _hidden.append((patch, before))
        put_back_hidden()
        if self.plan is not None and self.plan.undo is not None:
            self.plan.undo()
        self.plan = None
        self.fault = ""

    def originals(self) -> dict[str, Any]:
        """The library's own objects in the place of which ours are, by dotted name."""
        found = {
            _label(patch): before
            for patch, before in self._before
            if _held(patch.owner, patch.name) is patch.replacement
        }
        if self.plan is not None:
            for cls in self.plan.constructors:
                found[f"{cls.__module__}.{cls.__qualname__}.__init__"] = cls.__init__  # type: ignore[misc]
        return found


def _label(patch: Patch) -> str:
    if patch.label:
        return patch.label
    if isinstance(patch.owner, ModuleType):
        return f"{patch.owner.__name__}.{patch.name}"
    return f"{patch.owner.__module__}.{patch.owner.__qualname__}.{patch.name}"


def _held(owner: Any, name: Any) -> Any:
    """Return the attribute that an owner has itself under a name, neither inherited nor bound."""
    if isinstance(owner, FunctionType):
        return getattr(owner, name)  # its defaults, which are in no dict
    space = owner if isinstance(owner, dict) else vars(owner)
    return space.get(name, _MISSING)


def _put(owner: Any, name: Any, value: Any) -> Any:
    """Put a value, or nothing, under a name; what was there."""
    before = _held(owner, name)
    if isinstance(owner, dict):
        if value is _MISSING:
            del owner[name]
        else:
            owner[name] = value
    elif value is _MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, value)
    return before


def put_back_hidden() -> None:
    """Take out replacements of plans that are over, which have come to light again."""
    for entry in _hidden[:]:
        patch, before = entry
        if _held(patch.owner, patch.name) is patch.replacement:
            _put(patch.owner, patch.name, before)
            _hidden.remove(entry)


def _is_imported(name: str) -> bool:
    """Return whether a module has been executed to its end."""
    module = sys.modules.get(name)
    if module is None:
        return False
    spec = getattr(module, "__spec__", None)
    return module in _executed or not getattr(spec, "_initializing", False)


# -- libraries that are not imported yet


class Watch:
    """Has parts applied when the last of their modules is imported. It finds what the other finders do."""

    def __init__(self) -> None:
        self._parts: list[PatchTarget] = []
        self._asking = local()

    def add(self, part: PatchTarget) -> None:
        """Apply a part now, or when its modules are there."""
        with _LOCK:
            part.apply()
            if part.plan is None and not part.fault:
                self._parts.append(part)
                if self not in sys.meta_path:
                    sys.meta_path.insert(0, self)

    def remove(self, part: PatchTarget) -> None:
        """Do not wait any more."""
        with _LOCK:
            if part in self._parts:
                self._parts.remove(part)
            if not self._parts and self in sys.meta_path:
                sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders return, with a loader that reports when the module is executed."""
        if getattr(self._asking, "now", False) or not any(fullname in part.modules for part in self._parts):
            return None
        self._asking.now = True
        try:
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)  # finders of old have none
                spec = None if find is None or finder is self else find(fullname, path, target)
                if spec is not None:
                    break
            else:
                return None
        finally:
            self._asking.now = False
        if spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _TellingLoader(spec.loader, self)
        return spec  # type: ignore[no-any-return]

    def settle(self) -> None:
        """Apply the parts that wait for nothing any more.

        A thread that imports must not wait for one that replaces: that one may be about to import the same.
        So it leaves parts to whoever has the lock, who looks again after giving it up.
        """
        while any(not part.waiting_for for part in self._parts) and _LOCK.acquire(blocking=False):
            try:
                for part in [part for part in self._parts if not part.waiting_for]:
                    self.remove(part)
                    part.apply()
            finally:
                _LOCK.release()


class _TellingLoader:
    """Loads by another loader, which is the one that the module gets to know."""

    def __init__(self, loader: Any, watch: Watch) -> None:
        self._loader = loader
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # `get_code`, `get_source` and the like

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Make the module as the other loader does."""
        return self._loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module and say so."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        _executed.add(module)
        self._watch.settle()


WATCH = Watch()


def parts_of(name: str, options: Options) -> list[PatchTarget]:
    """The parts of a library: itself, and clients on top of it. Plans stand in the modules `_<library>`."""

    def make(library: str) -> PatchPlan:
        module: Any = import_module(f".._{library}", __name__)
        return module.plan(options)  # type: ignore[no-any-return]

    waits_for = options.known.modules
    return [
        PatchTarget(waits_for[library], partial(make, library))
        for library in sorted(waits_for, key=lambda library: library != name)
    ]
