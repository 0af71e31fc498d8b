"""The C text of what runs for every frame: no look-up by name, no call or sum of objects.

Cython compiles any Python, only slower: a name that a .pxd does not have shows here and nowhere else.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from codecgen.layouts import layouts
from codecgen.load import load_project

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "cython" / "amqpcodec"
LAYOUTS = [layout.name for layout in layouts(load_project(ROOT))]
FUNCTION = re.compile(
    r"^static [^\n;]*?__pyx_f_\w*?_c_(\w+)\([^\n]*\) \{\n(.*?)^\}\n", re.MULTILINE | re.DOTALL
)
# Adding to a bytearray in place is what a frame that spans chunks takes.
GENERIC = re.compile(
    r"__Pyx_PyObject_(?:Get|Set)Attr\w*|__Pyx_PyObject_(?:Fast|Vector)?Call\w*|PyObject_(?:Call|GetAttr)\w*"
    r"|__Pyx_GetModuleGlobalName|__Pyx_GetBuiltinName|__Pyx_CallUnboundCMethod\w*"
    r"|PyObject_RichCompare\w*|PyNumber_(?!InPlaceAdd)\w+|__Pyx_PyLong_\w*Obj\w*"
)
NAME = re.compile(r"__pyx_n_u_([a-z]\w*)")
DIRECT = {
    "frames": ("12FrameDecoder__read", "12FrameDecoder__header"),
    "stream": (
        "13StreamDecoder__advance", "13StreamDecoder__enter", "13StreamDecoder__fill",
        "13StreamDecoder__frame",
    ),
    "messages": (
        "14MessageDecoder__read", "14MessageDecoder__find", "14MessageDecoder__body_of",
        "14MessageDecoder__message",
    ),
}  # fmt: skip
# What is looked up only where a frame spans chunks, or once the frame is refused. Constants need no mention.
SELDOM = {
    ("stream", "13StreamDecoder__next_chunk"): {"popleft"},
    ("frames", "12FrameDecoder__read_raw"): {"dialect", "fatal", "name", "startswith"},
    ("stream", "13StreamDecoder__read_method"): set[str](),
    ("stream", "13StreamDecoder__read_body"): set[str](),
    ("stream", "13StreamDecoder__read_properties"): {"weight", "weight_not_zero"},
    ("messages", "14MessageDecoder__begin"): set[str](),
    ("messages", "14MessageDecoder__body"): set[str](),
}


@cache
def functions(module: str) -> dict[str, str]:
    """The bodies of the C functions of a module that callers reach without a look-up."""
    path = BUILD / f"{module}_c.c"
    if not path.is_file():
        pytest.skip(f"{path.relative_to(ROOT)} is not there: nothing has been compiled in this tree")
    return {match[1]: match[2] for match in FUNCTION.finditer(path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_read_and_written_without_look_ups(layout: str) -> None:
    found = functions("_generated/layouts")
    for part in ("read", "write"):
        assert GENERIC.findall(found[f"{part}_{layout}"]) == []


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in DIRECT for name in DIRECT[module]])
def test_the_decoders_go_from_frame_to_frame_without_look_ups(module: str, name: str) -> None:
    assert GENERIC.findall(functions(f"_kernel/{module}")[name]) == []


@pytest.mark.parametrize(("module", "name"), SELDOM)
def test_what_is_looked_up_is_known_and_seldom(module: str, name: str) -> None:
    assert set(NAME.findall(functions(f"_kernel/{module}")[name])) <= SELDOM[module, name]


def test_a_look_up_would_be_found() -> None:
    # It makes an error, so it looks up names.
    assert GENERIC.findall(functions("_kernel/encoder")["7Encoder__foreign"])
