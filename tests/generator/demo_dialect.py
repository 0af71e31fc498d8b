"""Dialects of one class with one method, and what the generator makes of it."""

from __future__ import annotations

import re

from codecgen.model import Assert, Class, Constant, Dialect, Field, Method


def field(
    name: str, type_: str = "short", *, reserved: bool = False, asserts: tuple[Assert, ...] = ()
) -> Field:
    return Field(name, name.replace("-", "_"), type_, type_, reserved, f"the {name}", asserts)


def method(*fields: Field, content: bool = False, deprecated: bool = False) -> Method:
    return Method(
        class_name="demo", class_id=9, name="call", method_id=7, python_name="DemoCall", short_name="Call",
        synchronous=False, content=content, deprecated=deprecated, responses=(), server=None, client=None,
        label="a call", fields=fields,
    )  # fmt: skip


def class_of(properties: tuple[Field, ...] = (), *methods: Method) -> Class:
    return Class("demo", 9, "Demo", None, None, None, "a demo", properties, methods)


def dialect(*classes: Class, constants: tuple[Constant, ...] = ()) -> Dialect:
    return Dialect(
        name="demo-1", module="demo_1", major=0, minor=9, revision=1, port=5672, label="Demo", domains=(),
        table_profile="rabbitmq", accepted_headers=(b"AMQP\0\0\t\1",), constants=constants, classes=classes,
        sources=(), corrections=(),
    )  # fmt: skip


def bits(count: int, first: int = 0) -> list[Field]:
    return [field(f"b{position}", "bit") for position in range(first, first + count)]


def function(text: str, name: str) -> list[str]:
    """The body of a function, in a class or not, without its indent."""
    lines = iter(text.splitlines())
    indent = next(line for line in lines if re.match(rf" *def {name}\(", line)).partition("def")[0]
    rest = list(lines)
    if text.partition(f" {name}(")[2].startswith("\n"):
        rest = rest[rest.index(f"{indent}) -> None:") + 1 :]
    indent += " " * 4
    end = next((at for at, line in enumerate(rest) if line and not line.startswith(indent)), len(rest))
    # A call closed at the indent of the function's body belongs to it.
    return [line.removeprefix(indent) for line in rest[:end] if line]
