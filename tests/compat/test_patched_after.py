"""What somebody puts over our functions is called, in whatever order it, and we, come and go."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import permutations
from types import FunctionType
from typing import Any

import pytest
from support.campaign import in_full
from support.compat.traffic import TRAFFIC, names_in
from support.compat.uses import (
    amqp_reads,
    amqp_writes,
    owner_of,
    pamqp_reads,
    pamqp_reads_header,
    pamqp_writes,
    pika_receives,
    pika_writes,
    wrapped,
)
from support.marks import replaces

from amqpcodec import compat

pytestmark = replaces

OPTIONS = {"outer": {}, "other": {"tolerant": True, "loops": True}}
PAIRS = (("enter outer", "leave outer"), ("enter other", "leave other"), ("patch", "undo"))
ORDERS = [
    order
    for order in permutations([step for pair in PAIRS for step in pair])
    if all(order.index(first) < order.index(second) for first, second in PAIRS) and order[0] == "enter outer"
]


ALL_ORDERS = ("pamqp.frame:unmarshal", "pika.frame:Body.marshal", "amqp.serialization:loads")
"""One function of each library is patched in all orders; the others in some, of which each has its own."""


class Play:
    """One function of a library, patched while `installed` blocks begin and end in any order."""

    def __init__(self, path: str) -> None:
        self.library = path.partition(".")[0]
        self.owner, self.name = owner_of(path)
        self.calls: list[str] = []
        self._blocks: dict[str, AbstractContextManager[Any]] = {}
        self._before: Any = None

    def step(self, step: str) -> None:
        what, _, which = step.partition(" ")
        if what == "enter":
            self._blocks[which] = compat.installed(self.library, **OPTIONS[which])
            self._blocks[which].__enter__()
        elif what == "leave":
            self._blocks.pop(which).__exit__(None, None, None)
        elif what == "patch":
            self._before = vars(self.owner)[self.name]
            replacing: Any = wrapped(self._before, self.calls)
            kind = type(self._before)
            setattr(self.owner, self.name, kind(replacing) if kind is staticmethod else replacing)
        else:
            setattr(self.owner, self.name, self._before)

    def close(self) -> None:
        for block in self._blocks.values():
            block.__exit__(None, None, None)


def names_of(library: str) -> dict[tuple[str, str], Any]:
    """What the modules of a library hold, and the classes in them."""
    found: dict[tuple[str, str], Any] = {}
    for module in [name for name in sys.modules if name.partition(".")[0] == library]:
        for name, value in vars(sys.modules[module]).items():
            found[module, name] = value
            if isinstance(value, type) and value.__module__ == module:
                found.update({(f"{module}.{name}", key): held for key, held in vars(value).items()})
    return {key: value for key, value in found.items() if not key[1].startswith("__")}


@pytest.fixture
def clean() -> Iterator[None]:
    yield
    for library in compat.PEERS:
        compat.uninstall(library)


@pytest.mark.parametrize(
    ("path", "use"),
    [
        ("pamqp.frame:unmarshal", pamqp_reads),
        ("pamqp.frame:marshal", pamqp_writes),
        ("pamqp.header:ContentHeader._get_flags", pamqp_reads_header),
        ("pika.frame:decode_frame", pika_receives),
        ("pika.frame:Body.marshal", pika_writes),
        ("pika.connection:Connection._on_data_available", pika_receives),
        ("amqp.serialization:loads", amqp_reads),
        ("amqp.serialization:decode_properties_basic", amqp_reads),
        ("amqp.serialization:dumps", amqp_writes),
        ("amqp.serialization:GenericContent._serialize_properties", amqp_writes),
    ],
)
def test_a_patch_over_ours_is_called_until_it_is_undone_and_nothing_of_ours_stays(
    path: str, use: Callable[[], None], clean: None
) -> None:
    pytest.importorskip(path.partition(".")[0])
    with compat.installed(path.partition(".")[0], loops=True):
        pass  # all modules are imported
    before = names_of(path.partition(".")[0])
    for order in ORDERS if path in ALL_ORDERS else ORDERS[len(path) % in_full(5, 10) :: in_full(5, 10)]:
        play = Play(path)
        try:
            patched = False
            for step in order:
                play.step(step)
                patched = {"patch": True, "undo": False}.get(step, patched)
                play.calls.clear()
                use()
                assert bool(play.calls) == patched, (order, step)
        finally:
            play.close()
        with compat.installed(play.library, loops=True) as given:
            assert "was replaced before" not in given[play.library].stock.values(), order
        after = names_of(play.library)
        assert [key for key in before if after[key] is not before[key]] == [], order


def counting(found: Any, calls: list[str]) -> Any:
    """A stand-in that notes its calls: a wrapper of a function, a class derived from a class."""
    if isinstance(found, (staticmethod, classmethod)):
        return type(found)(counting(found.__func__, calls))
    if isinstance(found, FunctionType) or not isinstance(found, type):
        return wrapped(found, calls)

    def construct(self: Any, *arguments: Any, **named: Any) -> None:
        calls.append(found.__name__)
        found.__init__(self, *arguments, **named)

    return type(found)(found.__name__, (found,), {"__init__": construct})


def calls_of_stand_ins(library: str) -> dict[str, list[str]]:
    """What traffic calls of a stand-in, for each name that has one in turn."""
    found = {}
    for owner, name in list(names_in(library)):
        calls: list[str] = []
        before = vars(owner)[name]
        try:
            replacing = counting(before, calls)
        except (AttributeError, TypeError):
            continue  # an enumeration, or something without a name
        setattr(owner, name, replacing)
        try:
            TRAFFIC[library]()
        except Exception as error:  # that it fails is the stand-in's fault, and has to stay so
            calls.append(type(error).__name__)
        finally:
            setattr(owner, name, before)
        found[f"{owner.__name__}.{name}"] = calls
    return found


@pytest.mark.slow("rebinds every name")
@pytest.mark.parametrize("library", compat.PEERS)
def test_whatever_somebody_rebinds_later_is_called_as_often_as_in_stock(library: str, clean: None) -> None:
    pytest.importorskip(library)
    with compat.installed(library, loops=True):
        TRAFFIC[library]()
    stock = calls_of_stand_ins(library)
    assert sum(map(bool, stock.values())) > 15
    for options in OPTIONS.values():
        with compat.installed(library, **options) as given:
            accelerated = calls_of_stand_ins(library)
            TRAFFIC[library]()
            assert given[library].active
        assert {name for name in stock if accelerated[name] != stock[name]} == set()
