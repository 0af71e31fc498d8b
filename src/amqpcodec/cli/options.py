"""The options of `amqpcodec.options` as arguments of commands: ``frame_max`` is ``--frame-max``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from .._options import Flag, Kind, Option, declared

Container = argparse._ActionsContainer  # a parser, or a group of its arguments


def add_options(parser: Container, options: type, *, without: tuple[str, ...] = ()) -> None:
    """Describe those of a `TypedDict`; those that are not given are absent from the namespace."""
    for name, option in declared(options).items():
        if name not in without:
            _add(parser, name, option, option.kind.parse, argparse.SUPPRESS)


def add_own_options(
    parser: Container,
    options: type,
    *,
    without: tuple[str, ...] = (),
    parse: Mapping[str, Callable[[str], Any]] | None = None,
) -> None:
    """Describe options of the command alone; those that are not given have their default in the namespace.

    Args:
        parser: where they are added.
        options: the `TypedDict`.
        without: names that are left out.
        parse: makes values of the text of some, and raises `ValueError` where it cannot.
    """
    for name, option in declared(options).items():
        if name not in without:
            own = (parse or {}).get(name, option.kind.parse)
            _add(parser, name, option, own, [] if option.default == () else option.default)


def given(arguments: argparse.Namespace, options: type) -> dict[str, Any]:
    """Select the options of a `TypedDict` that were given."""
    return {name: value for name, value in vars(arguments).items() if name in declared(options)}


def _add(parser: Container, name: str, option: Option, parse: Callable[[str], Any], default: object) -> None:
    kind, flag = option.kind, name.replace("_", "-")
    if isinstance(kind, Flag):
        prefix, store = ("--no-", "store_false") if option.default else ("--", "store_true")
        parser.add_argument(prefix + flag, dest=name, action=store, default=default, help=option.doc)
        return
    about = option.doc if option.default in (None, (), "") else f"{option.doc} (default {_default(option)})"
    keywords: dict[str, Any] = {"choices": kind.choices} if kind.choices else {"metavar": kind.metavar}
    if not kind.choices:
        keywords["type"] = _parser(kind, parse)
    action = _Repeated if kind.repeats else "append" if kind.several else "store"
    names = [f"-{option.letter}"] * bool(option.letter) + [f"--{flag}"]
    parser.add_argument(*names, dest=name, action=action, default=default, help=about, **keywords)


def _default(option: Option) -> str:
    return option.kind.show(option.default)


def _parser(kind: Kind, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def parsed(text: str) -> Any:
        try:
            value = parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return text if kind.repeats else value  # those that repeat are parsed together

    parsed.kind = kind  # type: ignore[attr-defined]
    return parsed


class _Repeated(argparse.Action):
    """Takes a list in one argument or several."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, text: Any, flag: Any = None
    ) -> None:
        texts = self.__dict__.setdefault("texts", [])
        texts.append(text)
        kind: Kind = self.type.kind  # type: ignore[union-attr]
        try:
            value = kind.parse(",".join(texts))
        except ValueError as error:  # each is right, but not with the others
            raise argparse.ArgumentError(self, str(error)) from error
        setattr(namespace, self.dest, value)
