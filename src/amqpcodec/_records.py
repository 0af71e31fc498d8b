"""Methods of all records that no octet depends on: copies with changes, dicts, names, signatures."""

from __future__ import annotations

from importlib import import_module

from ._typing import TYPE_CHECKING, Any
from .types import EPOCH, NO_CONTENT

if TYPE_CHECKING:
    from inspect import Signature
    from typing import TypeVar

    _R = TypeVar("_R")

_SHOWN = 64  # octets of a body that a repr shows whole
_MADE_AT_RUN_TIME = 1 << 9  # Py_TPFLAGS_HEAPTYPE, of `__flags__`
# By wire type, the values of arguments that are not given, as in the text of generated constructors.
DEFAULTS: dict[str, Any] = {
    "bit": False, "octet": 0, "short": 0, "long": 0, "longlong": 0, "shortstr": "", "longstr": b"",
    "timestamp": EPOCH, "table": None, "content": NO_CONTENT,
}  # fmt: skip


def replace(record: _R, /, **changes: Any) -> _R:
    """A copy of a record with some fields changed; `copy.replace` does the same from Python 3.13 on.

    Args:
        record: a method, properties, `Frame`, `ContentHeader`, `Message` or another payload. Of
            `RawProperties`, which cannot be changed, it makes ordinary properties.
        changes: fields by name.

    Raises:
        TypeError: not a record, or a name that is no field of it.
        DecodeError: raw properties that cannot be decoded.
    """
    if not _is_record(record):
        raise TypeError(f"replace() takes a record, not {type(record).__name__}")
    made: _R = record.__replace__(**changes)  # type: ignore[attr-defined]  # every record has it
    return made


def asdict(record: Any) -> dict[str, Any]:
    """The fields of a record by name, in the order of the wire; records in them are dicts as well.

    Args:
        record: a method, properties, `Frame`, `ContentHeader`, `Message` or another payload.

    Raises:
        TypeError: not a record.
        DecodeError: raw properties that cannot be decoded.
    """
    if not _is_record(record):
        raise TypeError(f"asdict() takes a record, not {type(record).__name__}")
    record = _ordinary(record)
    fields = {name: getattr(record, name) for name in _names(record)}
    return {name: asdict(value) if _is_record(value) else value for name, value in fields.items()}


def replaced(record: Any, /, **changes: Any) -> Any:
    """Return a copy of a record with changes: `__replace__` of records."""
    record = _ordinary(record)
    names = _names(record)
    for name in changes:
        if name not in names:
            raise TypeError(f"{type(record).__name__} has no field {name!r}")
    if not hasattr(record, "spec"):
        return type(record)(**{name: getattr(record, name) for name in names} | changes)
    made = record.__copy__()
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def _is_record(value: object) -> bool:
    return getattr(type(value), "__replace__", None) is replaced


def _ordinary(record: Any) -> Any:
    """Raw properties decoded, whose own attributes may have names of fields; others as they are."""
    return record.decoded() if callable(getattr(type(record), "decoded", None)) else record


def _names(record: Any) -> tuple[str, ...]:
    if hasattr(record, "spec"):
        return tuple(field.attribute for field in record.spec.fields)
    return getattr(record, "__match_args__", ())


def body_repr(body: Any) -> str:
    """A body as a repr shows it: a long one by its size and its first octets."""
    if isinstance(body, list):
        size = sum(len(chunk) for chunk in body if isinstance(chunk, bytes))
        return repr(body) if size <= _SHOWN else f"<{len(body)} chunks, {size} bytes>"
    if not isinstance(body, bytes) or len(body) <= _SHOWN:
        return repr(body)
    return f"<{len(body)} bytes {body[:16]!r}...>"


def constructor_name(cls: type) -> str:
    """Return the name of a constructor in errors: ``Basic.Publish`` for a method, else that of the class."""
    name = cls.__name__
    group, _, method = getattr(getattr(cls, "spec", None), "name", "").partition(".")
    prefix = group.title().replace("-", "")
    return f"{prefix}.{name.removeprefix(prefix)}" if method and name.startswith(prefix) else name


class TwinSignature:
    """`__signature__` of a compiled class: that of the same class of the pure build."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> Signature:
        mine = owner.__mro__[: owner.__mro__.index(self._cls)]
        if instance is not None or any("__init__" in vars(cls) or "__new__" in vars(cls) for cls in mine):
            raise AttributeError("__signature__")
        from inspect import signature  # seldom needed, and slow to import

        return signature(_twin(self._cls))


def set_fields(record: Any, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Set the fields of a record of the compiled build, as its constructor in the pure build does.

    Raises:
        TypeError: wrong arguments.
    """
    base = next((cls for cls in type(record).__mro__ if _is_compiled(cls) and "spec" in vars(cls)), None)
    spec = getattr(base, "spec", None)
    fields = spec.fields if spec is not None else ()
    names = vars(base)["__match_args__"] if spec is not None else ()
    given = dict(zip(names, positional, strict=False))
    known = [field.attribute for field in fields]
    if len(positional) > len(names) or any(name in given or name not in known for name in named):
        error = None if base is None else arguments_error(base, positional, named)
        raise error or TypeError(f"{type(record).__name__}() takes no arguments")
    given.update(named)
    for field in fields:
        value = given.get(field.attribute)
        if field.attribute not in given or (value is None and field.type == "table"):
            value = default_of(spec, field)
        setattr(record, field.attribute, value)


def default_of(spec: Any, field: Any) -> Any:
    """Return the value of a field that is not given: of a property None, but for a bit."""
    if field.type != "bit" and not hasattr(spec, "method_id"):
        return None
    return {} if field.type == "table" else DEFAULTS[field.type]


def arguments_error(cls: type, positional: tuple[Any, ...], named: dict[str, Any]) -> TypeError | None:
    """Return Python's error for wrong arguments of a compiled class, as the pure build raises it."""
    for base in cls.__mro__:
        if _is_compiled(base) and ("__init__" in vars(base) or "spec" in vars(base)):
            try:
                _twin(base).__init__(None, *positional, **named)
            except TypeError as error:
                return error.with_traceback(None)
            except Exception:  # they are not wrong, and there is no instance to set up
                return None
    return None


def _is_compiled(cls: type) -> bool:
    """Return whether a class is compiled, and not one that a caller derived in a module of such a name."""
    return cls.__module__.endswith("_c") and not cls.__flags__ & _MADE_AT_RUN_TIME


def _twin(cls: type) -> Any:
    """Return the class of the pure build for a compiled one."""
    module = import_module(f"{cls.__module__.removesuffix('_c')}_py")
    return getattr(module, cls.__name__)
