"""The page of all options, from `amqpcodec.options`: names in Python, in commands and in Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_type_hints

from amqpcodec import options as declared
from amqpcodec._options import Option
from docs_pages.markup import anchor, code, document, heading, sentence, table


def page() -> str:
    """The page."""
    return document(
        "Options",
        "An option is declared once, in `amqpcodec.options`. `frame_max` is a keyword in Python, "
        "`--frame-max` in a command, `frameMax` in Spark. As text, sizes may be `64k`, `4m` and `1g`; times "
        "may be `30s`, `5m` and `1h`.",
        heading(2, "All options", "all"),
        table(("option", "default", "meaning"), _rows()),
        heading(2, "Who takes which", "takers"),
        "Each is a `TypedDict` of `amqpcodec.options`, for annotations of programs that pass options on.",
        table(("class", "what takes them", "options"), _takers()),
    )


def _classes() -> Iterator[tuple[str, Any]]:
    for name in declared.__all__:
        yield name, getattr(declared, name)


def _options(owner: Any) -> dict[str, Option]:
    hints = get_type_hints(owner, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


def _rows() -> Iterator[tuple[str, str, str]]:
    found = {
        (name, option.doc, _default(option))
        for _, cls in _classes()
        for name, option in _options(cls).items()
    }
    for name, doc, default in sorted(found):
        yield code(name), default, sentence(doc)


def _default(option: Option) -> str:
    return "none" if option.default in (None, (), "") else code(option.kind.show(option.default))


def _takers() -> Iterator[tuple[str, str, str]]:
    for name, cls in _classes():
        takers = cls.__doc__.removeprefix("Options of ").rstrip(".").replace("``", "`")
        yield (
            f"{anchor(f'amqpcodec.options.{name}')}{code(name)}",
            takers,
            ", ".join(map(code, _options(cls))),
        )
