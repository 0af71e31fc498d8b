"""The page that begins the reference of the protocol: dialects, wire types, tags of field tables."""

from __future__ import annotations

from collections.abc import Sequence

from codecgen.model import Dialect
from codecgen.wire_types import WIRE_TYPES

from amqpcodec.profiles import KIND_NAMES, PROFILES
from docs_pages.markup import code, document, heading, link, place, table


def page(dialects: Sequence[Dialect]) -> str:
    """The page."""
    return document(
        "The protocol",
        "These pages are generated from `spec/`, as the codec is. "
        "[Differences between the dialects](differences.md) has them side by side.",
        heading(2, "Dialects", "dialects"),
        _dialects(dialects),
        heading(2, "Frames", "frames"),
        "A frame has its type (1 octet), the channel (2), the size of the payload (4), the payload, and one "
        "octet `ce`. A payload is a method, a content header, a part of a body, or nothing. "
        "[Constants](rabbitmq-0-9-1.md#constants) has the types.",
        heading(2, "Wire types", "wire-types"),
        "Neighbouring bits share an octet. Numbers are unsigned, with the highest octet first.",
        _types(),
        heading(2, "Field tables", "field-tables"),
        "A value in a field table begins with a tag. Dialects disagree about tags, so a profile says what a "
        "tag means. A name in brackets is read outside of strict mode, and never written.",
        _tags(),
    )


def _dialects(dialects: Sequence[Dialect]) -> str:
    rows = [
        (
            link(code(each.name), f"{each.name}.md"),
            code(f"amqpcodec.{each.module}"),
            code(each.protocol_header.hex(" ")),
            str(len(each.classes)),
            str(len(each.methods)),
            code(each.table_profile),
        )
        for each in dialects
    ]
    return table(("dialect", "module", "protocol header", "classes", "methods", "field tables"), rows)


def _types() -> str:
    rows = [
        (
            f"{place(f'type.{each.name}')}{code(each.name)}",
            each.octets,
            code(each.annotation.replace("_", "")),
            code(each.column),
        )
        for each in WIRE_TYPES.values()
    ]
    return table(("type", "octets", "Python", "column"), rows)


def _tags() -> str:
    tags = sorted({tag for each in PROFILES.values() for tag in each.readable(strict=False)})
    rows = [(code(tag), *(_meaning(each.name, tag) for each in PROFILES.values())) for tag in tags]
    return table(("tag", *map(code, PROFILES)), rows)


def _meaning(profile: str, tag: str) -> str:
    tags, tolerated = PROFILES[profile].tags, PROFILES[profile].tolerated
    if tag in tags:
        return KIND_NAMES[tags[tag]]
    return f"({KIND_NAMES[tolerated[tag]]})" if tag in tolerated else ""
