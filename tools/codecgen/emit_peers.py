"""The facts of other libraries as tables, by which `amqpcodec.compat` fills and reads their classes."""

from __future__ import annotations

from codecgen.code import Code, string
from codecgen.peers import Peer, PeerClass, PeerField


def render_peers(peers: list[Peer]) -> str:
    """The text of the module: classes by library and rules, formats and properties by library."""
    code = Code()
    code.lines(
        '"""The classes of other libraries, field by field; read through `amqpcodec.compat._facts`.',
        "",
        "A class is its name, its index, why it is left to the library (or nothing), and its fields. A field",
        "is its name, wire type, default, which values the constructor replaces and by what, and checks:",
        "kind, operand and whether None passes. The end of a field that has neither of these is left out,",
        "a default of None with it. Older rules have only the classes that differ.",
        '"""',
        "",
        "from amqpcodec._typing import Any",
        "",
    )
    with code.block("CLASSES: dict[str, dict[str, tuple[Any, ...]]] = {"):
        for peer in peers:
            if peer.classes:
                _emit_rules(code, peer)
    code.lines("}", "")
    code.line(f"NEWEST = {{{', '.join(f'{string(peer.name)}: {string(peer.rules)}' for peer in peers)}}}")
    code.line()
    with code.block("FORMATS: dict[str, dict[int, str]] = {"):
        for peer in peers:
            if peer.formats:
                pairs = [f"{index:#010x}: {string(text)}" for index, text in peer.formats.items()]
                code.items(f"{string(peer.name)}: {{", pairs, "},")
    code.lines("}", "")
    with code.block("PROPERTIES: dict[str, tuple[tuple[str, str], ...]] = {"):
        for peer in peers:
            if peer.properties:
                pairs = [f"({string(name)}, {string(letter)})" for name, letter in peer.properties]
                code.items(f"{string(peer.name)}: (", pairs, "),")
    code.line("}")
    return code.text()


def _emit_rules(code: Code, peer: Peer) -> None:
    with code.block(f"{string(peer.name)}: {{"):
        for rules, classes in peer.classes.items():
            with code.block(f"{string(rules)}: ("):
                for cls in classes:
                    _emit_class(code, cls)
            code.line("),")
    code.line("},")


def _emit_class(code: Code, cls: PeerClass) -> None:
    head = f"({string(cls.name)}, {cls.index:#010x}, {string(cls.leave)}, ["
    code.call(head, [_field(field) for field in cls.fields], "]),")


def _field(field: PeerField) -> str:
    """Return a field as far as it says something; `compat._facts.Field` has the defaults of the rest."""
    parts = [string(field.name), string(field.kind)]
    if field.default is not None or field.coerce or field.checks:
        parts.append(_value(field.default))
    if field.coerce or field.checks:
        parts += [string(field.coerce), _value(field.instead)]
    if field.checks:
        checks = (f"({string(kind)}, {_value(operand)}, {none})" for kind, operand, none in field.checks)
        parts.append(f"[{', '.join(checks)}]")
    return f"({', '.join(parts)})"


def _value(value: object) -> str:
    return string(value) if isinstance(value, str) else "..." if value is ... else repr(value)
