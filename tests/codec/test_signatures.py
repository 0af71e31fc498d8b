"""`help` and `inspect.signature` say the same of both builds, and errors of constructors name the class."""

from __future__ import annotations

import importlib
import inspect
import pydoc
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from support.implementation import Implementation

from amqpcodec import DIALECTS, _backend

KERNEL = ("dialect", "rawproperties", "rawtable", "records", "tables")
OTHERS = ("amqpcodec.capture.events", "amqpcodec.capture.streams", "amqpcodec.connection.machine")
# Only one text for both builds: what they say of themselves is looked at once.
SHARED = ("arrow", "capture", "connection", "stats")
Parts = list[tuple[str, Any]]


def parameters(thing: Any) -> list[tuple[str, Any, Any]]:
    """Name, kind and default; what is bound says nothing of its first parameter."""
    found = inspect.signature(thing).parameters.values()
    return [(each.name, each.kind, each.default) for each in found if each.name != "self"]


def public(build: Implementation, name: str) -> Iterator[tuple[str, Any]]:
    """The public classes and functions of a module."""
    if "." in name:
        module = _backend.load(name, build.name)
    else:
        module = build.dialect(name) if name in DIALECTS else build.kernel(name)
    for each in module.__all__:
        if callable(getattr(module, each)):
            yield each, getattr(module, each)


def pairs(both: tuple[Implementation, Implementation], name: str) -> Iterator[tuple[str, Any, Any]]:
    compiled, pure = (dict(public(build, name)) for build in both)
    assert compiled.keys() == pure.keys()
    for each, thing in compiled.items():
        yield each, thing, pure[each]


@pytest.mark.parametrize("name", [*DIALECTS, *KERNEL, *OTHERS])
def test_signatures_and_docstrings_are_the_same(
    both: tuple[Implementation, Implementation], name: str
) -> None:
    for each, compiled, pure in pairs(both, name):
        assert parameters(compiled) == parameters(pure), each
        assert inspect.getdoc(compiled) == inspect.getdoc(pure), each
        assert inspect.getdoc(compiled), each


@pytest.mark.parametrize("name", [*DIALECTS, *KERNEL, *OTHERS])
def test_so_are_those_of_public_methods(both: tuple[Implementation, Implementation], name: str) -> None:
    seen = 0
    for each, compiled, pure in pairs(both, name):
        if not isinstance(compiled, type):
            continue
        for method in dir(pure):
            there = getattr(pure, method)
            if method.startswith("_") or isinstance(there, type) or not callable(there):
                continue
            seen += 1
            assert parameters(getattr(compiled, method)) == parameters(there), (each, method)
            assert inspect.getdoc(getattr(compiled, method)) == inspect.getdoc(there), (each, method)
    assert seen or name in ("dialect", "tables", "amqpcodec.capture.events")


@pytest.mark.parametrize("name", SHARED)
def test_public_names_of_the_layers_above_say_what_they_take(name: str) -> None:
    if name in ("arrow", "stats"):
        pytest.importorskip("pyarrow")
    module = importlib.import_module(f"amqpcodec.{name}")
    for each in module.__all__:
        thing = getattr(module, each)
        if not isinstance(thing, type) and not inspect.isroutine(thing):
            continue
        assert inspect.getdoc(thing), each
        if not (isinstance(thing, type) and issubclass(thing, Exception)):
            found = inspect.signature(thing).parameters.values()
            assert not [one for one in found if one.name == "options"], each


def test_help_shows_arguments_and_text(amqp: ModuleType) -> None:
    shown = pydoc.plain(pydoc.render_doc(amqp.FrameDecoder))
    assert "Turns a stream of octets into frames" in shown
    assert "frame_max_slack: int = 0" in shown.replace("'", "")
    assert "feed(self" in shown
    assert amqp.FrameDecoder.__doc__
    assert amqp.MessageDecoder.__doc__


def test_a_subclass_has_the_signature_of_its_own_constructor(amqp: ModuleType) -> None:
    class Own(amqp.FrameDecoder):  # type: ignore[misc, name-defined]
        def __init__(self, name: str) -> None:
            super().__init__()

    class Derived(amqp.FrameDecoder):  # type: ignore[misc, name-defined]
        pass

    assert [name for name, _, _ in parameters(Own)] == ["name"]
    assert parameters(Derived) == parameters(amqp.FrameDecoder)


@pytest.mark.parametrize(
    ("named", "make"),
    [
        ("Basic.Publish", lambda amqp: amqp.Basic.Publish),
        ("Queue.DeclareOk", lambda amqp: amqp.Queue.DeclareOk),
        ("BasicProperties", lambda amqp: amqp.BasicProperties),
        ("Frame", lambda amqp: amqp.Frame),
        ("Message", lambda amqp: amqp.Message),
        ("FrameDecoder", lambda amqp: amqp.FrameDecoder),
        ("MessageDecoder", lambda amqp: amqp.MessageDecoder),
        ("Encoder", lambda amqp: amqp.Encoder),
    ],
)
def test_errors_of_constructors_name_the_class(amqp: ModuleType, named: str, make: Any) -> None:
    with pytest.raises(TypeError) as caught:
        make(amqp)(x=1)
    assert str(caught.value) == f"{named}() got an unexpected keyword argument 'x'"
    with pytest.raises(TypeError) as caught:
        make(amqp)(*range(40))
    assert str(caught.value).startswith(f"{named}() takes ")


@pytest.mark.parametrize(
    "call",
    [
        lambda amqp: amqp.Basic.Publish(*range(6)),
        lambda amqp: amqp.Basic.Publish("", exchange="", reserved_1=0),
        lambda amqp: amqp.Basic.Publish(*range(5), reserved_1=0),
        lambda amqp: amqp.Frame(1),
        lambda amqp: amqp.Frame(*range(4)),
        lambda amqp: amqp.Message(),
        lambda amqp: amqp.FrameDecoder(1),
        lambda amqp: amqp.Encoder(1, strict=True),
    ],
)
def test_wrong_arguments_are_refused_in_the_same_words(
    both: tuple[Implementation, Implementation], call: Any
) -> None:
    texts = []
    for build in both:
        with pytest.raises(TypeError) as caught:
            call(build.dialect("rabbitmq-0-9-1"))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_what_a_constructor_does_with_right_arguments_is_left_alone(amqp: ModuleType) -> None:
    with pytest.raises(ValueError, match="frame_max must be"):
        amqp.FrameDecoder(frame_max=1)
    with pytest.raises(TypeError, match="limits must be Limits, not int"):
        amqp.FrameDecoder(limits=1)
    assert amqp.Frame(8, 0, amqp.Heartbeat()) == amqp.Frame(type=8, channel=0, payload=amqp.Heartbeat())
