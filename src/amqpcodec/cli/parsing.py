"""The parser of arguments: a mistake gets one line that names what may have been meant, and where to look."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from .._nearest import nearest_hint
from . import output

_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)$")
_UNKNOWN = re.compile(r"unrecognized arguments: (-\S*?)(?:[=\s]|$)")
_NO_COMMAND = "the following arguments are required: COMMAND"


class Parser(argparse.ArgumentParser):
    """Takes options by their whole names: one added later must not change what another means."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def parse_known_args(  # type: ignore[override]  # of its overloads, nobody uses the others
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """As the method replaced, but a subcommand itself refuses what it does not know."""
        self._given = list(args) if args is not None else sys.argv[1:]
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """End the command with a message, the nearest name there is, and where all of them are."""
        if message == _NO_COMMAND:
            options = (each for each in self._given if each.startswith("-"))
            message = next((f"unrecognized arguments: {each}" for each in options), message)
        hint = nearest_hint(*self._mistaken(message))
        self.exit(2, f"{self.prog}: error: {message}{hint}\n{self.prog} --help shows what there is\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """As the method replaced, but help that cannot be written is an error of the output."""
        if file is sys.stderr:
            super()._print_message(message, file)
            return
        with output.blaming_output():
            print(message, end="", flush=True)

    def _mistaken(self, message: str) -> tuple[str, Iterable[str]]:
        """A name in a message that is none, and those that there are."""
        if found := _UNKNOWN.search(message):
            return found[1], self._option_string_actions
        if found := _CHOICE.search(message):
            return found[1], re.findall(r"[\w.*-]+", found[2])
        return "", ()
