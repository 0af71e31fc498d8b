"""The options of `amqpcodec.options` as arguments of commands: ``frame_max`` is ``--frame-max``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from .._options import Flag, Kind, Option, declared


def add_options(parser: argparse.ArgumentParser, options: type, *, without: tuple[str, ...] = ()) -> None:
    """Describe those of a `TypedDict`; those that are not given are absent from the namespace."""
    for name, option in declared(options).items():
        if name not in without:
            _add(parser, name, option)


def given(arguments: argparse.Namespace, options: type) -> dict[str, Any]:
    """Select the options of a `TypedDict` that were given."""
    return {name: value for name, value in vars(arguments).items() if name in declared(options)}


def _add(parser: argparse.ArgumentParser, name: str, option: Option) -> None:
    kind, flag = option.kind, name.replace("_", "-")
    if isinstance(kind, Flag):
        prefix, store = ("--no-", "store_false") if option.default else ("--", "store_true")
        parser.add_argument(
            prefix + flag, dest=name, action=store, default=argparse.SUPPRESS, help=option.doc
        )
        return
    about = option.doc if option.default in (None, (), "") else f"{option.doc} (default {_default(option)})"
    keywords: dict[str, Any] = {"choices": kind.choices} if kind.choices else {"metavar": kind.metavar}
    if not kind.choices:
        keywords["type"] = _parser(kind)
    action = _Repeated if kind.repeats else "store"
    parser.add_argument(
        f"--{flag}", dest=name, action=action, default=argparse.SUPPRESS, help=about, **keywords
    )


def _default(option: Option) -> str:
    return option.kind.show(option.default)


def _parser(kind: Kind) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            value = kind.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        return text if kind.repeats else value  # those that repeat are parsed together

    parse.kind = kind  # type: ignore[attr-defined]
    return parse


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
