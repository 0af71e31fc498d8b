"""aio-pika's messages, made in one step: the same attributes, the same lock, the same exceptions."""

from __future__ import annotations

import copy
import gc
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from importlib.machinery import PathFinder
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from support.marks import replaces

pytest.importorskip("aio_pika")

import aio_pika
import aio_pika.message
from aio_pika import DeliveryMode, IncomingMessage, Message
from aiormq.abc import DeliveredMessage
from pamqp import commands, header

from amqpcodec import compat
from amqpcodec.compat import _patches, _relied

pytestmark = replaces

COUNT = 4000
NAMES = [f"aio_pika.message.{cls}.__init__" for cls in ("Message", "IncomingMessage")]
WHEN = datetime(2026, 11, 22, 12, tzinfo=UTC)


class Mode(IntEnum):
    KEPT = 2


class Text(str):
    __slots__ = ()


class Raising:
    def __bool__(self) -> bool:
        raise LookupError("asked whether it is true")


TEXTS = (None, None, "", "x", "text", Text("x"), Text(), 5, b"x", Raising())
VALUES: dict[str, tuple[Any, ...]] = {
    "headers": (None, {}, {"a": 1}, [], (("a", 1),), "x"),
    "content_type": (None, "text/plain", 7),
    "content_encoding": (None, "gzip", 7),
    "delivery_mode": (None, 0, 1, 2, 3, True, "2", 2.5, Mode.KEPT, *DeliveryMode),
    "priority": (None, 0, 5, 300, -1, True, "7", "x", 1.5),
    "correlation_id": TEXTS,
    "reply_to": TEXTS,
    "expiration": (None, 0, 5, "1000", timedelta(1)),
    "message_id": TEXTS,
    "timestamp": (None, WHEN, 0, 1.5, timedelta.max, "now", True),
    "type": TEXTS,
    "user_id": TEXTS,
    "app_id": TEXTS,
}
BODIES = (b"", b"body", b"body", b"body", bytearray(b"body"), memoryview(b"body"), [1, 2], 3, "text", None)


@pytest.fixture
def stock() -> Iterator[dict[str, Callable[..., None]]]:
    """aio-pika's own constructors, while others are in their place."""
    with compat.installed("pamqp") as status:
        yield {name: status["pamqp"].originals[name] for name in NAMES}


def made(construct: Callable[..., None], cls: type, *arguments: Any, **named: Any) -> Any:
    """The attributes of a message that a constructor makes; or the exception, in words."""
    message = cls.__new__(cls)
    try:
        construct(message, *arguments, **named)
    except Exception as error:
        return type(error), str(error)
    slots = [name for base in cls.__mro__ for name in vars(base) if type(vars(base)[name]) is SLOT]
    return {name: shown(getattr(message, name, "unset")) for name in slots}


SLOT = type(vars(Message)["body"])


def shown(value: Any) -> Any:
    return type(value), value


def some(random: Random, values: tuple[Any, ...]) -> Any:
    return values[0] if random.random() < 0.3 else random.choice(values)


@pytest.mark.parametrize("part", range(4))
def test_messages_are_made_alike(stock: dict[str, Callable[..., None]], part: int) -> None:
    random = Random(f"messages {part}")
    failed = 0
    for _ in range(COUNT // 4):
        names = random.sample(list(VALUES), random.randrange(4))
        given = {name: some(random, VALUES[name]) for name in names}
        body = random.choice(BODIES)
        expected = made(stock[NAMES[0]], Message, body, **given)
        assert made(Message.__init__, Message, body, **given) == expected, (body, given)
        failed += isinstance(expected, tuple)
    assert 0.05 < failed / (COUNT // 4) < 0.8
    assert compat.status()["pamqp"].fast > COUNT // 20


def delivered(random: Random) -> DeliveredMessage:
    """A message as aiormq hands it on, with properties as a broker may send them, or worse."""
    names = [name for name in VALUES if name != "headers"]
    given = {name: some(random, VALUES[name]) for name in random.sample(names, random.randrange(3))}
    properties = commands.Basic.Properties()
    for name, value in given.items():
        setattr(properties, "message_type" if name == "type" else name, value)
    if random.random() < 0.5:
        properties.headers = {"a": 1}
    if random.random() < 0.3:
        properties.expiration = random.choice(("1000", "x", ""))
    delivery = random.choice(
        (
            commands.Basic.Deliver("ctag", random.choice((0, 1, 2)), True, "exchange", "key"),
            commands.Basic.GetOk(7, False, "exchange", "key", 3),
            commands.Basic.Return(312, "NO_ROUTE", "exchange", "key"),
        )
    )
    return DeliveredMessage(
        delivery=delivery,
        header=header.ContentHeader(0, 4, properties),
        body=random.choice((b"", b"body", b"body", bytearray(b"body"))),
        channel=SimpleNamespace(is_closed=False),  # type: ignore[arg-type]
    )


def plain() -> DeliveredMessage:
    """A message as brokers send them."""
    properties = commands.Basic.Properties(timestamp=WHEN, expiration="1000", priority=3)
    deliver = commands.Basic.Deliver("ctag", 1, False, "exchange", "key")
    channel: Any = SimpleNamespace(is_closed=False)
    return DeliveredMessage(deliver, header.ContentHeader(0, 1, properties), b"x", channel)


@pytest.mark.parametrize("part", range(4))
def test_messages_that_come_in_are_made_alike(stock: dict[str, Callable[..., None]], part: int) -> None:
    random = Random(f"incoming {part}")
    for _ in range(COUNT // 4):
        message = delivered(random)
        given: tuple[Any, ...] = random.choice(((), (True,), (False,), (1,)))
        named = {"no_ack": random.random() < 0.5} if not given and random.random() < 0.5 else {}
        expected = made(stock[NAMES[1]], IncomingMessage, message, *given, **named)
        found = made(IncomingMessage.__init__, IncomingMessage, message, *given, **named)
        assert found == expected, (message, given, named)
    assert compat.status()["pamqp"].fast > COUNT // 10


def test_a_message_that_lacks_something_is_refused_in_the_same_words(
    stock: dict[str, Callable[..., None]],
) -> None:
    for properties in (SimpleNamespace(headers={}), SimpleNamespace(content_type="x"), None):
        given: Any = SimpleNamespace(properties=properties)
        message = plain()
        message = DeliveredMessage(message.delivery, given, b"x", message.channel)
        expected = made(stock[NAMES[1]], IncomingMessage, message)
        assert expected[0] is AttributeError
        assert made(IncomingMessage.__init__, IncomingMessage, message) == expected


@pytest.mark.parametrize(
    ("arguments", "named"),
    [((), {}), ((b"x", {}), {}), ((b"x",), {"body": b"y"}), ((b"x",), {"unknown": 1}), ((), {"body": b"x"})],
)
def test_wrong_arguments_are_refused_in_the_same_words(
    stock: dict[str, Callable[..., None]], arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    expected = made(stock[NAMES[0]], Message, *arguments, **named)
    assert made(Message.__init__, Message, *arguments, **named) == expected


def test_a_locked_message_refuses_attributes_and_its_copy_does_not(stock: Any) -> None:
    message = Message(b"body", headers={"a": 1})
    message.priority = 7
    message.lock()
    with pytest.raises(ValueError, match=r"^Message is locked$"):
        message.priority = 8
    assert (message.locked, message.priority) == (True, 7)
    copied = copy.copy(message)
    copied.priority = 9
    assert (copied.locked, copied.priority, copied.headers) == (False, 9, {"a": 1})


def test_a_constructor_may_be_called_again_and_heeds_the_lock(stock: dict[str, Callable[..., None]]) -> None:
    outcomes = []
    for construct in (stock[NAMES[0]], Message.__init__):
        message = Message(b"one")
        message.lock()
        construct(message, b"two")
        outcomes.append((message.body, message.locked))
    assert outcomes == [(b"two", False)] * 2


def test_without_acknowledgements_a_message_is_locked_by_its_own_lock(stock: Any) -> None:
    locked = []

    class Telling(IncomingMessage):
        def lock(self) -> None:
            locked.append(self.delivery_tag)
            super().lock()

    message = plain()
    told = Telling(message, no_ack=True)
    assert locked == [told.delivery_tag]
    assert (told.locked, told.processed) == (True, True)


class Setting(Message):
    def __init__(self, body: bytes, **named: Any) -> None:
        vars(self)["seen"] = []
        super().__init__(body, **named)

    def __setattr__(self, key: str, value: Any) -> None:
        vars(self)["seen"].append(key)
        super().__setattr__(key, value)


class Shouting(Message):
    @property
    def priority(self) -> int:  # type: ignore[override]
        return 99

    @priority.setter
    def priority(self, value: int) -> None:
        vars(self)["heard"] = value


class Between(Message):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        vars(self)["between"] = True


class Mixed(IncomingMessage, Between):
    pass


def test_classes_that_have_a_say_in_it_are_asked(stock: Any) -> None:
    assert "body" in vars(Setting(b"x"))["seen"]
    assert vars(Shouting(b"x", priority=3))["heard"] == 3
    assert vars(Mixed(plain()))["between"]


@pytest.mark.parametrize(
    "name", ["optional", "DeliveryMode", "encode_timestamp", "decode_timestamp", "decode_expiration"]
)
def test_a_function_that_somebody_puts_into_the_module_is_called(
    stock: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []
    own = getattr(aio_pika.message, name)

    class Called:
        NOT_PERSISTENT = DeliveryMode.NOT_PERSISTENT

        def __call__(self, *arguments: Any) -> Any:
            called.append(arguments)
            return own(*arguments)

    message = plain()
    IncomingMessage(message)
    monkeypatch.setattr(aio_pika.message, name, Called())
    IncomingMessage(message)
    assert called != []


@pytest.mark.parametrize("name", ["encode_timestamp", "decode_timestamp"])
def test_an_implementation_that_somebody_registers_is_called(stock: Any, name: str) -> None:
    function = getattr(aio_pika.message, name)
    (table,) = gc.get_referents(function.registry)
    before = dict(table)
    message = plain()
    assert IncomingMessage(message).timestamp == WHEN
    later = WHEN + timedelta(1)
    try:
        function.register(datetime)(lambda value: later)
        assert IncomingMessage(message).timestamp == later
    finally:
        table.clear()
        table.update(before)
        function._clear_cache()


@pytest.mark.parametrize("cls", [Message, IncomingMessage])
def test_a_constructor_that_somebody_puts_there_is_called(
    stock: Any, cls: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []
    own = vars(cls)["__init__"]
    message = plain()
    IncomingMessage(message)
    monkeypatch.setattr(cls, "__init__", lambda *args, **named: called.append(args) or own(*args, **named))
    IncomingMessage(message)
    assert len(called) == 1
    monkeypatch.undo()
    IncomingMessage(message)
    assert len(called) == 1


def test_a_setattr_that_somebody_puts_there_is_called(stock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = []
    own = Message.__setattr__
    Message(b"x")
    monkeypatch.setattr(
        Message, "__setattr__", lambda self, key, value: keys.append(key) or own(self, key, value)
    )
    Message(b"x")
    assert "body" in keys


def test_the_constructors_are_put_back() -> None:
    before = Message.__init__, IncomingMessage.__init__
    with compat.installed("pamqp"):
        assert Message.__init__ is not before[0]
    assert (Message.__init__, IncomingMessage.__init__) == before


@pytest.mark.parametrize(
    ("owner", "name"),
    [(aio_pika.message, "encode_timestamp"), (Message, "__setattr__"), (Message, "__init__")],
)
def test_what_somebody_replaced_before_leaves_the_constructor_as_it_is(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *arguments, **named: own(*arguments, **named))
    before = Message.__init__
    with compat.installed("pamqp") as status:
        assert Message.__init__ is before
        assert NAMES[0] in status["pamqp"].stock
        assert "pamqp.frame.unmarshal" in status["pamqp"].originals


def test_a_release_that_is_not_known_keeps_its_constructors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_relied.LEARNT, "aio_pika", {})
    monkeypatch.setattr(_relied, "_compared_once", _relied._compared_once.__wrapped__)
    monkeypatch.setattr(_patches, "_said", set())
    before = Message.__init__
    try:
        with pytest.warns(RuntimeWarning, match="left as it is: aio_pika"):
            found = compat.install("pamqp")
        assert Message.__init__ is before
    finally:
        compat.uninstall("pamqp")
    assert found.stock[NAMES[0]] == _relied.REASON
    assert "pamqp.frame.unmarshal" in found.originals


@pytest.mark.parametrize(
    ("edited", "names"),
    [
        ("return func(value) if value else default", NAMES),
        ("self.priority = optional(priority, int, 0)", NAMES),
        ("self.__lock = True", NAMES[1:]),
        ("self.cluster_id = message", NAMES[1:]),
        ('raise ValueError("Message is locked")', NAMES),
        ("return info", []),
    ],
)
def test_a_next_release_keeps_the_constructors_that_rely_on_what_it_changes(
    edited: str, names: list[str], tmp_path: Path
) -> None:
    shutil.copytree(Path(str(aio_pika.__file__)).parent, tmp_path / "aio_pika")
    file = tmp_path / "aio_pika" / "message.py"
    text = file.read_text(encoding="utf-8")
    assert edited in text
    file.write_text(text.replace(edited, f"assert True; {edited}"), encoding="utf-8")
    spec = PathFinder.find_spec("aio_pika", [str(tmp_path)])
    assert spec is not None
    assert [each.name for each in _relied.compare(spec) if each.rules is None] == names
