"""The pages of the API, whose text mkdocstrings takes from docstrings; and links from the names in these."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docs_pages.markup import table

SOURCES = Path(__file__).resolve().parents[2] / "src"
DECODERS = {
    "FrameDecoder": "amqpcodec._kernel.frames_py",
    "MessageDecoder": "amqpcodec._kernel.messages_py",
    "Encoder": "amqpcodec._kernel.encoder_py",
}
"""Names that each module of a dialect has, bound to that dialect."""

MODULES = (
    "errors", "connection", "aio", "testing", "testing.faults", "testing.strategies", "capture", "record",
    "replay", "arrow", "stats", "spark", "compat", "compat.kombu", "profiles",
)  # fmt: skip
"""The public modules beside `amqpcodec` itself. They share no names but those of errors."""

_NAME = re.compile(r"(?<![`\w\[])`((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)`(?!`)")
_NAMES = re.compile(r"^( +)([a-z]\w*(?:, [a-z]\w*)+)(:.*(?:\n\1 +.*)*)", re.MULTILINE)
_DIALECT_NAMES = (
    ("`Basic.Publish`, `BasicPublish`, ...", "the class of a method, by both names"),
    ("`BasicProperties`, ...", "the properties of a content"),
    ("`FRAME_METHOD`, `NOT_FOUND`, ...", "the constants"),
    ("`DIALECT`", "the `Dialect`"),
    ("`METHODS`, `PROPERTIES`", "the classes, by their numbers on the wire"),
    ("`FrameDecoder`, `MessageDecoder`, `Encoder`", "below"),
    ("`encode_method`, `encode_message`, ...", "the functions of an `Encoder` with the usual settings"),
    ("`decode_table`, `encode_table`", "field tables of the dialect, on their own"),
)
_DIALECTS = f"""# Dialect modules

`amqpcodec.rabbitmq`, `amqp091`, `amqp09`, `amqp08` and `qpid08` have the same names. The classes of methods
and properties are in the [reference of the protocol](../protocol.md).

{table(("name", "meaning"), _DIALECT_NAMES)}
"""


def pages() -> dict[str, str]:
    """The pages, by their path."""
    found = {"reference/api/amqpcodec.md": _page("amqpcodec")}
    decoders = (
        f"::: {module}.{name}\n    options:\n      inherited_members: true\n"
        for name, module in DECODERS.items()
    )
    found["reference/api/dialects.md"] = "\n".join([_DIALECTS, *decoders])
    return found | {f"reference/api/{each}.md": _page(f"amqpcodec.{each}") for each in MODULES}


def _page(module: str) -> str:
    listed = "".join(f"\n        - {name}" for name in members(module))
    options = f"      show_root_heading: false\n      show_root_toc_entry: false\n      members:{listed}"
    return f"# {module}\n\n::: {module}\n    options:\n{options}\n"


def members(module: str) -> list[str]:
    """The names that the page of a module describes: its public ones, but for errors that live elsewhere."""
    elsewhere = () if module == "amqpcodec.errors" else _public("amqpcodec.errors")
    return [name for name in _public(module) if name not in elsewhere]


@cache
def _public(module: str) -> tuple[str, ...]:
    """The names in `__all__` of a module, or else those of its classes and functions without underscore."""
    path = SOURCES.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return tuple(_names(ast.parse(path.read_text(encoding="utf-8"))))


def _names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                yield from ast.literal_eval(value)
                return
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name


def separated(docstring: str) -> str:
    """A docstring in which each name has a line of its own: `host, port: where to connect` becomes two.

    Griffe knows no object of several names, and gives such a line the type of the line before.
    """

    def lines(found: re.Match[str]) -> str:
        return "\n".join(f"{found[1]}{name}{found[3]}" for name in found[2].split(", "))

    return _NAMES.sub(lines, docstring)


def linked(docstring: str, path: str) -> str:
    """A docstring with links from the public names in it.

    Args:
        docstring: the text; names stand between backquotes.
        path: of the object that it describes.
    """
    return _NAME.sub(lambda found: _link(found[0], found[1], path), docstring)


def _link(text: str, name: str, path: str) -> str:
    target = _target(name, ".".join(path.split(".")[:2]))
    return f"[{text}][{target}]" if target and not path.startswith(target) else text


def _target(name: str, home: str) -> str | None:
    """The object that a name means in a module: one of its own, of the package, or of another module."""
    first, _, rest = name.removeprefix("amqpcodec.").partition(".")
    if first in MODULES:
        second = rest.partition(".")[0]
        return f"amqpcodec.{first}.{second}" if second in members(f"amqpcodec.{first}") else None
    if first in _public("amqpcodec.options"):
        return f"amqpcodec.options.{first}"
    if first in DECODERS:
        return f"{DECODERS[first]}.{first}"
    others = [f"amqpcodec.{each}" for each in MODULES]
    owners = [
        each
        for each in (home, "amqpcodec", *others)
        if each in (*others, "amqpcodec") and first in members(each)
    ]
    return f"{owners[0]}.{first}" if owners else None
