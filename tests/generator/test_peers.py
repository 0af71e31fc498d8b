"""The files of spec/peers: what a slip in one of them says."""

from __future__ import annotations

from pathlib import Path

import pytest
from codecgen.elements import SpecError
from codecgen.emit_peers import render_peers
from codecgen.load import load_project
from codecgen.model import Dialect
from codecgen.peers import load_peers

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def dialects() -> list[Dialect]:
    return load_project(ROOT)


@pytest.fixture
def peers(tmp_path: Path) -> Path:
    """A folder with a copy of the files."""
    folder = tmp_path / "spec" / "peers"
    folder.mkdir(parents=True)
    for path in (ROOT / "spec" / "peers").glob("*.toml"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize(
    ("file", "was", "now", "message"),
    [
        ("pika", 'peer = "pika"', "peer = [", "spec/peers/pika.toml: not TOML: "),
        ("pika", 'peer = "pika"', "", "spec/peers/pika.toml: peer is missing"),
        ("pika", "[names]", "[nmaes]", "spec/peers/pika.toml: unknown key 'nmaes'"),
        ("pamqp", "locale =", "locael =", "spec/peers/pamqp.toml: defaults: nothing is meant by 'locael'"),
        ("pika", 'dialect = "rabbitmq', 'dialect = "carrot', "unknown dialect 'carrot"),
        ("pika", 'access = "amqp-0-9"', 'acess = "amqp-0-9"', "amqp-0-9 has no class acess"),
        ("pamqp", 'ticket = "0"', 'ticket = "O"', "'O' is not a value"),
        ("pamqp", "{ falsy =", "{ flasy =", "unknown coercion 'flasy'"),
        ("pamqp", "{ length = 127 }", "{ size = 127 }", "unknown check 'size'"),
        ("pamqp", '[release."3.3".coercions]', '[release."3.3".coercion]', "unknown key 'coercion'"),
        ("pamqp", '"basic.recover-async" =', '"basic.restore" =', "nothing is meant by 'basic.restore'"),
        ("amqp", '"declare-ok", "delete-ok"', '"declared", "delete-ok"', "has no method exchange.declared"),
        ("amqp", 'bit = "b"', "", "no letter for bit"),
    ],
)  # fmt: skip
def test_a_slip_is_an_error_that_names_it(
    file: str, was: str, now: str, message: str, peers: Path, dialects: list[Dialect]
) -> None:
    path = peers / f"{file}.toml"
    assert was in path.read_text(encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace(was, now), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_peers(peers.parent.parent, dialects)
    assert message in str(caught.value)


def test_the_most_special_entry_holds(peers: Path, dialects: list[Dialect]) -> None:
    text = (peers / "pamqp.toml").read_text(encoding="utf-8")
    (peers / "pamqp.toml").write_text(
        text.replace('"type:bit" = "False"', '"type:bit" = "True"\nnowait = "7"'), encoding="utf-8"
    )
    (pamqp,) = [peer for peer in load_peers(peers.parent.parent, dialects) if peer.name == "pamqp"]
    classes = {cls.name: cls for cls in pamqp.classes["4.0"]}
    declare = {field.name: field.default for field in classes["Queue.Declare"].fields}
    assert (declare["durable"], declare["nowait"], declare["arguments"]) == (True, 7, None)
    assert [field.default for field in classes["Channel.Flow"].fields] == [None]


def test_an_older_release_has_only_the_classes_that_differ(dialects: list[Dialect]) -> None:
    (pamqp,) = [peer for peer in load_peers(ROOT, dialects) if peer.name == "pamqp"]
    older = {cls.name for cls in pamqp.classes["3.3"]}
    assert {"Basic.Cancel", "Basic.Reject", "Queue.Declare"} <= older
    assert not {"Basic.Ack", "Tx.Select", "Basic.Properties"} & older
    assert older < {cls.name for cls in pamqp.classes["4.0"]}


def test_a_method_that_a_library_lacks_has_no_class(peers: Path, dialects: list[Dialect]) -> None:
    with (peers / "pika.toml").open("a", encoding="utf-8") as file:
        file.write('[lacks]\n"connection.unblocked" = "it is newer"\n')
    lacking, whole = (
        {
            cls.name
            for peer in load_peers(root, dialects)
            if peer.name == "pika"
            for cls in peer.classes["1.4"]
        }
        for root in (peers.parent.parent, ROOT)
    )
    assert whole - lacking == {"Connection.Unblocked"}


def test_the_tables_are_python_that_gives_the_facts_again(dialects: list[Dialect]) -> None:
    space: dict[str, object] = {}
    exec(render_peers(load_peers(ROOT, dialects)), space)
    assert space["NEWEST"] == {"amqp": "5.4.2", "pamqp": "4.0", "pika": "1.4"}
    assert ("Basic.Get", 0x3C0046, "") in [cls[:3] for cls in space["CLASSES"]["pika"]["1.4"]]  # type: ignore[index]
