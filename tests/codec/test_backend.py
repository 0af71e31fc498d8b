"""Which build is used, who says so, and what an import brings along."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.implementation import wanted
from support.subprocesses import output, python

ROOT = Path(__file__).resolve().parent.parent.parent
TELL = "import amqpcodec as a; print(a.IMPL, a.dialect('amqp-0-9-1').METHODS[60, 80].__module__)"
DIALECT_MODULES = ("amqp08", "amqp09", "amqp091", "qpid08", "rabbitmq")
# An import hook that hides every compiled module of the package.
HIDE = """
import sys
from importlib.abc import MetaPathFinder
class Hide(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.startswith("amqpcodec") and name.endswith("_c"):
            raise ModuleNotFoundError(f"No module named {name!r} (hidden)", name=name)
sys.meta_path.insert(0, Hide())
"""


def build_in_use(impl: str | None, before: str = "") -> str:
    return output("-c", before + TELL, impl=impl).decode().strip()


@pytest.mark.parametrize("impl", wanted())
def test_the_environment_chooses_the_build(impl: str) -> None:
    assert build_in_use(impl) == f"{impl} amqpcodec._generated.amqp091_{impl}"


@pytest.mark.parametrize("impl", [None, ""], ids=["unset", "empty"])
def test_the_compiled_build_serves_where_it_is_there(impl: str | None) -> None:
    if "c" not in wanted():
        pytest.skip("only the pure build is tested")
    assert build_in_use(impl) == "c amqpcodec._generated.amqp091_c"


@pytest.mark.parametrize("impl", [None, ""], ids=["unset", "empty"])
def test_the_pure_build_serves_elsewhere(impl: str | None) -> None:
    assert build_in_use(impl, HIDE) == "py amqpcodec._generated.amqp091_py"


def test_the_pure_build_needs_no_compiled_module() -> None:
    assert build_in_use("py", HIDE) == "py amqpcodec._generated.amqp091_py"


def test_a_build_asked_for_and_missing_is_an_error() -> None:
    finished = python("-c", HIDE + TELL, impl="c")
    text = finished.stderr.decode()
    assert finished.returncode != 0
    assert "ImportError: AMQPCODEC_IMPL=c, but the compiled build cannot be imported" in text
    assert "(hidden)" in text
    assert "The above exception was the direct cause" in text


LOADED = """
import json, sys
import amqpcodec, amqpcodec.aio, amqpcodec.capture.frames, amqpcodec.cli.decode, amqpcodec.connection
for name in amqpcodec.DIALECTS:
    amqpcodec.dialect(name)
decoder = amqpcodec.dialect("amqp-0-9-1").FrameDecoder()
assert not list(decoder.feed(b"\\1\\0"))
state = amqpcodec.capture.frames.Reading("auto").new_state()
def pure():
    return sorted(name for name in sys.modules if name.startswith("amqpcodec.") and name.endswith("_py"))
before = pure()
if COLUMNS:
    import amqpcodec.arrow
    from amqpcodec._columns.decoding import Decoding
    decoding = Decoding(
        dialect="auto", mode="", include_credentials=False, frame_max=4096, max_body_bytes=1,
        max_open_messages=1, check_all=False, batch_bytes=1, impl=amqpcodec.IMPL,
    )
    assert type(decoding.reading(False).new_state()) is type(state)
print(json.dumps([type(state).__module__, before, pure()]))
"""


@pytest.mark.parametrize("impl", wanted())
def test_directions_of_captures_are_kept_in_the_state_of_the_build_in_use(impl: str) -> None:
    state, loaded, _ = json.loads(output("-c", "COLUMNS = False" + LOADED, impl=impl))
    assert state == f"amqpcodec.capture.direction_state_{impl}"
    if impl == "c":  # locks, decoders and connections as well
        assert loaded == ["amqpcodec.capture.layers_py", "amqpcodec.capture.links_py"]


def test_pure_texts_that_the_compiled_build_uses_are_those_of_the_architecture_page() -> None:
    if "c" not in wanted():
        pytest.skip("only the pure build is tested")
    pytest.importorskip("pyarrow")
    *_, loaded = json.loads(output("-c", "COLUMNS = True" + LOADED, impl="c"))
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    _, _, table = page.partition("| pure text | what the compiled build uses of it |")
    listed = set(re.findall(r"(\w+_py)`", table.partition("\n\n")[0]))
    assert listed == {name.rpartition(".")[2] for name in loaded}
    assert "direction_state_py" not in listed


@pytest.mark.parametrize("module", DIALECT_MODULES)
def test_a_dialect_compiled_before_its_specification_changed_says_how_to_compile_it(module: str) -> None:
    if "c" not in wanted():
        pytest.skip("only the pure build is tested")
    generated = f"amqpcodec._generated.{module}"
    changed = (
        f"import {generated}_facts as facts; facts.DIGEST = 'of another'; from amqpcodec import {module}"
    )
    finished = python("-c", changed, impl="c")
    assert finished.returncode != 0
    assert finished.stderr.decode().splitlines()[-1] == (
        f"ImportError: {generated}_c: its specification has changed since it was compiled; "
        "compile it again, by `make build` in a checkout"
    )


@pytest.mark.parametrize("impl", ["C", "python", "1"])
def test_other_values_are_an_error(impl: str) -> None:
    finished = python("-c", TELL, impl=impl)
    assert finished.returncode != 0
    assert f"ImportError: AMQPCODEC_IMPL must be c or py, not {impl!r}" in finished.stderr.decode()


def loaded(code: str, impl: str) -> set[str]:
    """The package's modules that are loaded after some code."""
    listing = "\nimport json, sys; print(json.dumps([n for n in sys.modules if n.startswith('amqpcodec')]))"
    names: list[Any] = json.loads(output("-c", code + listing, impl=impl))
    return set(names)


@pytest.mark.parametrize("impl", wanted())
def test_the_package_alone_brings_no_dialect(impl: str) -> None:
    names = loaded("import amqpcodec", impl)
    assert not {f"amqpcodec.{module}" for module in DIALECT_MODULES} & names
    assert not {f"amqpcodec._generated.{module}_{impl}" for module in DIALECT_MODULES} & names
    assert not [name for name in names if name.startswith(("amqpcodec.capture", "amqpcodec.cli"))]


@pytest.mark.parametrize("impl", wanted())
@pytest.mark.parametrize("module", DIALECT_MODULES)
def test_one_dialect_brings_no_other(impl: str, module: str) -> None:
    names = {name.rpartition(".")[2] for name in loaded(f"from amqpcodec import {module}", impl)}
    # The modules of a dialect are named after it, with an ending for what they hold.
    others = {name for name in names if name.split("_")[0] in set(DIALECT_MODULES) - {module}}
    assert module in names
    assert others == set()


@pytest.mark.parametrize("impl", wanted())
def test_one_build_brings_no_module_of_the_other(impl: str) -> None:
    other = "py" if impl == "c" else "c"
    names = loaded("from amqpcodec import rabbitmq", impl)
    assert not [name for name in names if name.endswith(f"_{other}")]


def test_dialects_are_found_by_their_names() -> None:
    import amqpcodec

    assert set(amqpcodec.DIALECTS.values()) == set(DIALECT_MODULES)
    for name, module in amqpcodec.DIALECTS.items():
        found: Any = amqpcodec.dialect(name)
        assert found.__name__ == f"amqpcodec.{module}"
        assert found.DIALECT.name == name
        assert found.DIALECT.module == found.__name__
    with pytest.raises(ValueError, match="no dialect 'amqp-1-0'; there are amqp-0-8, qpid-0-8"):
        amqpcodec.dialect("amqp-1-0")


def test_public_names_exist_and_are_of_the_build_in_use() -> None:
    import amqpcodec

    for name in amqpcodec.__all__:
        assert hasattr(amqpcodec, name), name
    ending = f"_{amqpcodec.IMPL}"
    for name in ("Frame", "ContentHeader", "Heartbeat", "Message", "OpaquePayload", "ProtocolHeader"):
        assert getattr(amqpcodec, name).__module__ == f"amqpcodec._kernel.records{ending}"
