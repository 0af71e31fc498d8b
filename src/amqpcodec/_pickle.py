"""How pickles come back: by public name, so that a pickle of one build loads in the other."""

from __future__ import annotations

from importlib import import_module

from ._typing import Any


def restore_record(module: str, name: str, values: list[Any]) -> Any:
    """A method or properties of a dialect from its values in wire order.

    Args:
        module: import path of the dialect's namespace, such as ``"amqpcodec.rabbitmq"``.
        name: class name, such as ``"BasicPublish"``.
        values: one value per field.
    """
    return restore_subclass(getattr(import_module(module), name), values, {})


def restore_subclass(cls: Any, values: list[Any], state: dict[str, Any]) -> Any:
    """A method or properties of a class that is given, such as one that a caller derived.

    Args:
        cls: the class; its constructor is not called.
        values: one value per field.
        state: further attributes.
    """
    record = cls.__new__(cls)
    for field, value in zip(record.spec.fields, values, strict=True):
        setattr(record, field.attribute, value)
    if state:
        record.__dict__.update(state)
    return record


def restore_raw_properties(
    octets: bytes,
    class_id: int,
    module: str,
    options: tuple[str, bool, Any, bool, bool],
    place: tuple[int, int],
) -> Any:
    """Properties that were kept as octets.

    Args:
        octets: their octets.
        class_id: the class of the content.
        module: import path of the dialect's namespace.
        options: how they are read: name of the table profile, strict, limits, whether tables stay octets,
            and tolerant.
        place: octets of the stream before them, and their channel; errors tell them.
    """
    backend = import_module(f"{__package__}._backend")  # late: it imports the kernel, which imports this
    restored = backend.load(f"{__package__}._kernel.rawproperties").restored
    return restored(octets, class_id, import_module(module).DIALECT, options, place)


def restore_public(name: str, arguments: tuple[Any, ...]) -> Any:
    """An object of a public class of the package from its constructor's arguments."""
    return getattr(import_module(__package__), name)(*arguments)
