"""Dialects of one class with one method."""

from __future__ import annotations

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
