"""Classes that callers derive from methods and properties: both builds fill, check and write them alike."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation


def of_publish(**attributes: Any) -> Callable[[ModuleType], type[Any]]:
    """Return what makes a subclass of basic.publish with these attributes."""
    return lambda amqp: type("Own", (amqp.BasicPublish,), attributes)


def spec_of(name: str, *bases: str, **attributes: Any) -> Callable[[ModuleType], type[Any]]:
    """Return what makes a subclass with the `spec` of another class."""
    return lambda amqp: type(
        "Own", tuple(getattr(amqp, base) for base in bases), attributes | {"spec": getattr(amqp, name).spec}
    )


def shouted(record: Any, name: str, value: Any) -> None:
    value = value.upper() if isinstance(value, str) else value
    super(type(record), record).__setattr__(name, value)


def got(record: Any, name: str) -> Any:
    value = object.__getattribute__(record, name)
    return value.upper() if name == "exchange" else value


def renamed(record: Any) -> None:
    record.exchange = "renamed"


CLASSES: dict[str, Callable[[ModuleType], type[Any]]] = {
    "plain": of_publish(),
    "slots": of_publish(__slots__=("mark",)),
    "slots of the same name": of_publish(__slots__=("exchange",)),
    "a property": of_publish(
        exchange=property(lambda made: made.__dict__["e"], lambda made, e: made.__dict__.update(e=e.upper()))
    ),
    "a property that cannot be set": of_publish(exchange=property(lambda made: "fixed")),
    "an attribute of the class": of_publish(exchange="of the class"),
    "what sets attributes": of_publish(__setattr__=shouted),
    "what returns attributes": of_publish(__getattribute__=got),
    "its own check": of_publish(validate=renamed),
    "the same spec": spec_of("BasicPublish", "BasicPublish"),
    "names of arguments": spec_of("BasicPublish", "BasicPublish", __match_args__=("routing_key",)),
    "the spec of another method": spec_of("BasicAck", "BasicPublish", delivery_tag=5, multiple=True),
    "two methods": lambda amqp: type("Own", (amqp.ChannelCloseOk, amqp.BasicPublish), {}),
    "a mixture": lambda amqp: type("Own", (type("Mixin", (), {"exchange": "mixed"}), amqp.BasicPublish), {}),
}
ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "none": ((), {}),
    "names": (("given",), {"routing_key": "key", "immediate": True}),
    "a name that is not interned": ((), {"".join(("ex", "change")): "given"}),
    "a name that is none": ((), {"exchang": "given"}),
    "a value twice": (("given",), {"exchange": "given"}),
    "too many": ((1, 2, 3, 4, 5), {}),
}


@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize("kind", CLASSES)
def test_both_builds_make_and_write_the_same(
    both: tuple[Implementation, Implementation], kind: str, arguments: str
) -> None:
    def outcome(amqp: ModuleType) -> tuple[object, ...]:
        positional, named = ARGUMENTS[arguments]
        try:
            made = CLASSES[kind](amqp)(*positional, **named)
            message = amqp.encode_message(1, made, None, b"body") if made.spec.content else b""
            return amqp.encode_method(1, made), message, amqp.encode_method(1, made, validate=True)
        except Exception as error:
            return type(error), str(error)

    compiled, pure = (outcome(impl.dialect("rabbitmq-0-9-1")) for impl in both)
    assert compiled == pure


def test_what_a_check_changes_is_written(amqp: ModuleType) -> None:
    own = of_publish(validate=renamed)(amqp)
    expected = amqp.encode_message(1, amqp.BasicPublish("renamed"), None, b"body")
    assert amqp.encode_message(1, own(), None, b"body", validate=True) == expected
    assert b"".join(amqp.encode_messages([(1, own(), None, b"body")], validate=True)) == expected


@pytest.mark.parametrize("name", ["Method", "Properties"])
def test_a_base_without_fields_takes_no_arguments(impl: Implementation, name: str) -> None:
    base = getattr(impl.records, name)
    for cls in (base, type("Own", (base,), {})):
        for positional, named in (((1,), {}), ((), {"exchange": ""})):
            with pytest.raises(TypeError, match=rf"^{cls.__name__}\(\) takes no arguments$"):
                cls(*positional, **named)


def unmade(cls: Any) -> Any:
    """Return an instance of a subclass of basic.publish whose exchange nobody has set."""
    made = cls.__new__(cls)
    for name, value in {"reserved_1": 0, "routing_key": "", "mandatory": False, "immediate": False}.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize("change", ["itself", "its base"])
def test_a_class_that_changes_after_it_was_seen_is_asked_again(amqp: ModuleType, change: str) -> None:
    base: Any = type("Base", (amqp.BasicPublish,), {})
    own: Any = type("Own", (base,), {})
    for _ in range(3):
        assert amqp.encode_method(1, own("before")) == amqp.encode_method(1, amqp.BasicPublish("before"))
    (own if change == "itself" else base).exchange = "after"
    assert amqp.encode_method(1, unmade(own)) == amqp.encode_method(1, amqp.BasicPublish("after"))


def test_classes_of_one_base_are_told_apart(amqp: ModuleType) -> None:
    plain = of_publish()(amqp)
    fixed = of_publish(exchange=property(lambda made: "fixed"))(amqp)
    for _ in range(3):
        assert amqp.encode_method(1, plain("a")) == amqp.encode_method(1, amqp.BasicPublish("a"))
        assert amqp.encode_method(1, unmade(fixed)) == amqp.encode_method(1, amqp.BasicPublish("fixed"))
