"""Installing, taking out and asking: what is replaced when, and who wins."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import inspect
import sys
import threading
import warnings
from pathlib import Path
from pydoc import render_doc
from types import ModuleType
from typing import Any
from unittest.mock import create_autospec

import pytest
from support.implementation import wanted
from support.marks import replaces
from support.subprocesses import output, python

from amqpcodec import compat
from amqpcodec._kernel import slots
from amqpcodec.compat import _patches, _relied
from amqpcodec.errors import UnknownReleaseError

pamqp = pytest.importorskip("pamqp")
frame: Any = pytest.importorskip("pamqp.frame")
commands: Any = pytest.importorskip("pamqp.commands")

STOCK = {name: getattr(frame, name) for name in ("marshal", "unmarshal")}


def replaced() -> bool:
    assert (frame.marshal is STOCK["marshal"]) == (frame.unmarshal is STOCK["unmarshal"])
    return frame.marshal is not STOCK["marshal"]


def names_of_pamqp() -> dict[str, dict[str, Any]]:
    """What the modules of pamqp hold, but for the book that Python keeps of warnings."""
    modules = {name: module for name, module in sys.modules.items() if name.startswith("pamqp")}
    return {
        name: {key: value for key, value in vars(module).items() if key != "__warningregistry__"}
        for name, module in modules.items()
    }


@replaces
def test_a_with_block_puts_back_exactly_what_was_there() -> None:
    before = names_of_pamqp()
    with compat.installed("pamqp") as given:
        assert given["pamqp"].active
        assert replaced()
    assert names_of_pamqp() == before
    assert compat.status()["pamqp"] == compat.Status("pamqp")


@replaces
def test_install_is_idempotent_and_uninstall_ends_it_at_once() -> None:
    try:
        assert compat.install("pamqp").active
        first = frame.unmarshal
        assert compat.install("pamqp").active
        assert frame.unmarshal is first
    finally:
        assert not compat.uninstall("pamqp").wanted
    assert not replaced()
    assert not compat.uninstall("pamqp").wanted


@replaces
def test_with_blocks_nest_and_the_innermost_options_count() -> None:
    with compat.installed("pamqp"):
        outer = frame.unmarshal
        with compat.installed("pamqp", tolerant=True):
            assert compat.status()["pamqp"].tolerant
            assert frame.unmarshal is not outer
        assert not compat.status()["pamqp"].tolerant
        assert replaced()
    assert not replaced()


@replaces
def test_what_was_installed_for_good_outlives_a_with_block() -> None:
    try:
        compat.install("pamqp")
        with compat.installed("pamqp"):
            pass
        assert replaced()
    finally:
        compat.uninstall("pamqp")


@replaces
def test_with_blocks_of_two_threads_that_overlap_end_with_the_last() -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with compat.installed("pamqp"):
            entered.set()
            leave.wait(10)

    with compat.installed("pamqp"):
        thread = threading.Thread(target=other)
        thread.start()
        assert entered.wait(10)
    assert replaced()
    leave.set()
    thread.join()
    assert not replaced()


def test_what_somebody_else_replaced_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def theirs(data_in: bytes) -> None: ...

    with compat.installed("pamqp"):
        monkeypatch.setattr(frame, "unmarshal", theirs)
    assert frame.unmarshal is theirs
    assert frame.marshal is STOCK["marshal"]
    monkeypatch.undo()
    frame.unmarshal = STOCK["unmarshal"]


@replaces
def test_a_function_that_somebody_imported_before_stays_the_one_of_the_library() -> None:
    held = frame.unmarshal
    octets = frame.marshal(commands.Basic.Ack(7), 1)
    with compat.installed("pamqp"):
        assert held is STOCK["unmarshal"]
        assert held is not frame.unmarshal
        assert held(octets)[2].delivery_tag == frame.unmarshal(octets)[2].delivery_tag == 7


@replaces
def test_the_status_names_the_originals_and_counts_calls() -> None:
    with compat.installed("pamqp"):
        octets = frame.marshal(commands.Basic.Ack(7), 1)
        frame.unmarshal(octets)
        with pytest.raises(ValueError, match="Could not determine frame type"):
            frame.marshal("no frame", 1)
        status = compat.status()["pamqp"]
    assert status.wanted
    assert status.active
    assert status.why == ""
    assert status.version == importlib.metadata.version("pamqp")
    assert status.originals["pamqp.frame.marshal"] is STOCK["marshal"]
    assert status.originals["pamqp.commands.Basic.Ack.__init__"] is commands.Basic.Ack.__init__
    assert status.fast == 2 + slots.ON
    assert status.fallbacks == {"pamqp.frame.marshal: class": 1}
    assert list(status.stock) == ["Basic.RecoverAsync"]


@pytest.mark.parametrize("name", ["marshal", "unmarshal"])
def test_a_replacement_is_a_function_to_who_inspects_or_mocks_it(name: str) -> None:
    def seen() -> tuple[Any, ...]:
        function = getattr(frame, name)
        mocked = create_autospec(function)
        with pytest.raises(TypeError) as refused:
            mocked(1, 2, 3)
        about = inspect.signature(function), inspect.getsource(function), inspect.getdoc(function)
        return inspect.isfunction(function), type(mocked), str(refused.value), *about, render_doc(function)

    stock = seen()
    with compat.installed("pamqp"):
        assert seen() == stock


def test_a_library_that_is_not_known_is_a_value_error() -> None:
    for function in (compat.install, compat.uninstall):
        with pytest.raises(ValueError, match=r"^no fast path for 'json'; there are pamqp, pika, amqp$"):
            function("json")
    with pytest.raises(
        ValueError,
        match=r"^no fast path for 'aio-pika'; there are pamqp, pika, amqp: aio-pika is built on pamqp$",
    ):
        compat.install("aio-pika")
    with pytest.raises(ValueError, match=r"^no fast path for 'json'; there are pamqp, pika, amqp$"):
        compat.supported("json")
    with pytest.raises(ValueError, match="json"), compat.installed("json"):
        pass


@replaces
def test_what_is_not_known_stays_and_is_named_and_is_an_error_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("amqpcodec.compat._relied.LEARNT", _relied.LEARNT | {"pamqp": {}})
    monkeypatch.setattr("amqpcodec.compat._relied.CLIENTS", {})  # aio-pika's own messages are known
    monkeypatch.setattr("amqpcodec.compat._relied._compared_once", _relied._compared_once.__wrapped__)
    monkeypatch.setattr(_patches, "_said", set())
    said = (
        f"pamqp {importlib.metadata.version('pamqp')}: not known, and left as it is: pamqp.frame.unmarshal, "
        "pamqp.frame.marshal, Connection.Start, Connection.StartOk and 63 more"
    )
    with pytest.raises(UnknownReleaseError) as caught:
        compat.install("pamqp", strict=True)
    assert str(caught.value) == said
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(2):
            with compat.installed("pamqp") as given:
                assert not replaced()
    assert [str(each.message) for each in warned] == [f"{said}; compat.status()['pamqp'].stock has all"]
    assert not given["pamqp"].active
    assert given["pamqp"].why == "nothing of it is known"
    assert len(given["pamqp"].stock) == 67
    assert set(given["pamqp"].stock.values()) == {_relied.REASON}


@replaces
def test_a_plan_that_fails_leaves_the_library_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def own_classes(stock: object, peer: str, facts: object) -> dict[str, type]:
        raise OSError("no such luck")

    from amqpcodec.compat import _pamqp

    monkeypatch.setattr(_pamqp, "own_classes", own_classes)
    with pytest.warns(RuntimeWarning, match=r"^pamqp\.frame stays as it is: OSError: no such luck$"):
        compat.install("pamqp")
    try:
        assert compat.status()["pamqp"].why == "OSError: no such luck"
        assert not compat.status()["pamqp"].active
        assert not replaced()
    finally:
        compat.uninstall("pamqp")


@pytest.mark.parametrize("fails", [False, True])
def test_a_finder_is_there_while_a_library_is_waited_for_and_no_longer(fails: bool) -> None:
    def make() -> _patches.PatchPlan:
        if fails:
            raise OSError("no such luck")
        return _patches.PatchPlan((), _patches.Counts())

    watch, before = _patches.Watch(), [*sys.meta_path]
    late = _patches.PatchTarget(["a_library_that_nobody_has"], make)
    watch.add(late)
    assert sys.meta_path == [watch, *before]
    with warnings.catch_warnings(record=True):
        watch.add(_patches.PatchTarget(["sys"], make))
    watch.remove(late)
    assert sys.meta_path == before


BEFORE = """
import sys, amqpcodec.compat as compat
status = compat.install("pamqp")
assert not status.active and status.why == "not imported yet: pamqp.frame, pamqp.commands", status
assert "pamqp" not in sys.modules
import pamqp.frame
assert compat.status()["pamqp"].active
assert type(pamqp.frame.__loader__).__name__ == "SourceFileLoader", pamqp.frame.__loader__
assert pamqp.frame.__spec__.loader is pamqp.frame.__loader__
for client in ("aio_pika.message", "aiormq.connection", "amqpstorm.connection"):
    try:
        __import__(client)
    except ModuleNotFoundError:
        pass
assert not any("amqpcodec" in type(finder).__module__ for finder in sys.meta_path)
"""
NEVER = """
import sys, amqpcodec.compat as compat
compat.install("pamqp")
compat.uninstall("pamqp")
import pamqp.frame
assert type(pamqp.frame.unmarshal).__name__ == "function"
assert not any("amqpcodec" in type(finder).__module__ for finder in sys.meta_path)
"""
THREADS = """
import sys, threading, amqpcodec.compat as compat
def importing():
    import pamqp.frame
def installing():
    for _ in range(15):
        compat.install("pamqp"); compat.uninstall("pamqp")
    compat.install("pamqp")
threads = [threading.Thread(target=target) for target in (importing, installing, importing, installing)]
for thread in threads: thread.start()
for thread in threads: thread.join(30)
assert not any(thread.is_alive() for thread in threads)
assert compat.status()["pamqp"].active
"""
FACADE = """
from amqpcodec.compat import pamqp
import pamqp as real, amqpcodec.compat as compat
assert compat.status()["pamqp"].active == {active}, compat.status()
from amqpcodec.compat.pamqp import commands, frame
assert frame is real.frame and commands.Basic is real.commands.Basic
assert pamqp.__version__ == real.__version__ if hasattr(real, "__version__") else True
try:
    pamqp.nothing
except AttributeError as error:
    assert str(error) == "module 'pamqp' has no attribute 'nothing'", error
else:
    raise SystemExit("an attribute that is not there")
"""
NOT_THERE = """
import sys, amqpcodec.compat as compat
class Nothing:
    def find_spec(self, fullname, path, target=None):
        if fullname == "pika":
            raise ModuleNotFoundError("No module named 'pika'", name="pika")
sys.meta_path.insert(0, Nothing())
status = compat.install("pika", strict={strict})
assert not status.active and not status.stock, status
print(status.why)
"""
PURE = """
import amqpcodec.compat as compat, pamqp.frame
before = dict(vars(pamqp.frame))
for status in (compat.install("pamqp"), compat.status()["pamqp"]):
    assert status.wanted and not status.active and status.why == "the pure build changes nothing", status
assert dict(vars(pamqp.frame)) == before
with compat.installed("pamqp", "pika", "amqp"):
    pass
assert compat.status()["pika"] == compat.Status("pika")
"""


@replaces
@pytest.mark.parametrize("program", [BEFORE, NEVER, THREADS], ids=["before", "never", "threads"])
def test_a_library_imported_later_is_accelerated_then(program: str) -> None:
    output("-W", "error", "-c", program, impl="c")


@pytest.mark.parametrize("impl", wanted())
def test_the_module_of_a_library_installs_and_hands_out_its_names(impl: str) -> None:
    output("-c", FACADE.format(active=impl == "c"), impl=impl)


def test_the_pure_build_changes_nothing_and_says_so() -> None:
    output("-W", "error", "-c", PURE, impl="py")


PURE_WARNS = """
import warnings, amqpcodec.compat as compat
from amqpcodec.compat.kombu import transport_options
def install():
    return compat.install("pamqp")
def enter():
    with compat.installed("pika", "pamqp"):
        pass
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for call in (install, install, enter, transport_options):
        call()
for one in caught:
    assert one.category is RuntimeWarning, one
    print(one.message)
"""


def test_the_pure_build_warns_once_of_each_library_that_it_does_not_accelerate() -> None:
    text = (
        "{} is not accelerated: amqpcodec is not compiled here (amqpcodec.IMPL is 'py'), and its pure build "
        "replaces nothing"
    )
    said = output("-c", PURE_WARNS, impl="py")
    assert said.decode().splitlines() == [text.format(name) for name in ("pamqp", "pika", "amqp")]


@replaces
def test_a_library_that_is_not_there_is_an_error_where_that_is_asked_for() -> None:
    said = b"pika is not installed, and amqpcodec does not bring it: pip install pika"
    done = python("-c", NOT_THERE.format(strict=False), impl="c")
    assert (done.returncode, done.stdout.strip()) == (0, said)
    assert b"RuntimeWarning: " + said in done.stderr
    done = python("-c", NOT_THERE.format(strict=True), impl="c")
    assert b"ModuleNotFoundError: " + said in done.stderr


class OldFinder:
    """A finder as there were before `find_spec`; Python passes over it."""

    def find_module(self, fullname: str, path: Any = None) -> None: ...


@replaces
@pytest.mark.filterwarnings("ignore:.*find_spec.*:ImportWarning")
@pytest.mark.parametrize("others", [[], [OldFinder()]], ids=["usual", "without find_spec"])
def test_the_finder_gives_what_other_finders_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: list[Any]
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*others, *sys.meta_path])
    (tmp_path / "watched_module.py").write_text("value = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    made: list[Any] = []

    def make() -> Any:
        from amqpcodec.compat._fast_c import Counts

        module = sys.modules["watched_module"]
        made.append(vars(module)["value"])
        return _patches.PatchPlan([_patches.Patch(module, "value", 2)], Counts())

    part = _patches.PatchTarget(("watched_module",), make)
    _patches.WATCH.add(part)
    try:
        module: ModuleType = importlib.import_module("watched_module")
        assert made == [1]
        assert module.value == 2
        assert isinstance(module.__loader__, importlib.machinery.SourceFileLoader)
        part.revert()
        assert module.value == 1
    finally:
        _patches.WATCH.remove(part)
        sys.modules.pop("watched_module", None)


HIDDEN = """
import gc, amqp, pamqp.commands, amqpcodec.compat as compat
compat.install("pamqp"), compat.install("amqp")
reachable = {type(each) for each in gc.get_objects()}
assert not reachable & {amqp.Message, pamqp.commands.Basic.Publish}
"""
RELOADED = """
import importlib, pamqp.frame, amqpcodec.compat as compat
compat.install("pamqp")
importlib.reload(pamqp.frame)
assert "pamqp.frame.marshal" not in compat.status()["pamqp"].originals
compat.install("pamqp")
assert "pamqp.frame.marshal" in compat.status()["pamqp"].originals
compat.uninstall("pamqp")
assert type(pamqp.frame.marshal).__name__ == "function"
"""
CYCLES = """
import gc, pamqp.frame, amqpcodec.compat as compat
def cycle():
    with compat.installed("pamqp"):
        pass
    gc.collect()
    return len(gc.get_objects())
cycle()
before = cycle()
assert max(cycle() for _ in range(5)) <= before + 5
"""
WEAKLY = """
import weakref, pamqp.frame, amqpcodec.compat as compat
compat.install("pamqp")
assert weakref.ref(pamqp.frame.marshal)() is pamqp.frame.marshal
"""
FAILING = """
import warnings, amqpcodec.compat as compat
from amqpcodec.compat import _pamqp
def failing(options):
    raise MemoryError
_pamqp.plan = failing
warnings.simplefilter("error")
compat.install("pamqp")
import pamqp.frame
status = compat.status()["pamqp"]
assert not status.active and status.why == "MemoryError: ", status
"""


@replaces
@pytest.mark.parametrize(
    "program",
    [HIDDEN, RELOADED, CYCLES, WEAKLY, FAILING],
    ids=["hidden models", "reload", "cycles", "weak references", "a plan that fails"],
)
def test_what_install_leaves_behind(program: str) -> None:
    output("-c", program, impl="c")
