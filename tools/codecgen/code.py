"""A text under construction: lines with an indent, and values as Python source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import wrap

WIDTH = 110
NO_BREAK = "\N{NO-BREAK SPACE}"  # in place of a space at which no line ends


class Code:
    """Collects lines; `with code.block("if x:")` indents what follows."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._indent = ""

    def line(self, text: str = "") -> None:
        """Add one line at the indent of now; an empty one stays empty."""
        self._lines.append(f"{self._indent}{text}" if text else "")

    def lines(self, *texts: str) -> None:
        """Add several lines."""
        for text in texts:
            self.line(text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a line, and indent what is added inside."""
        self.line(head)
        outer, self._indent = self._indent, f"{self._indent}    "
        yield
        self._indent = outer

    def call(self, head: str, arguments: list[str], tail: str = ")") -> None:
        """Add a call or tuple: on one line where it fits, else an argument a line."""
        flat = f"{head}{', '.join(arguments)}{tail}"
        if len(self._indent) + len(flat) <= WIDTH:
            self.line(flat)
            return
        with self.block(head):
            for argument in arguments:
                self.line(f"{argument},")
        self.line(tail)

    def any_of(self, conditions: list[str]) -> None:
        """Add an `if` with several conditions: on one line where it fits, else a condition a line."""
        flat = f"if {' or '.join(conditions)}:"
        if len(self._indent) + len(flat) <= WIDTH:
            self.line(flat)
            return
        with self.block("if ("):
            for place, condition in enumerate(conditions):
                self.line(f"or {condition}" if place else condition)
        self.line("):")

    def items(self, head: str, items: list[str], tail: str = ")") -> None:
        """Add names or pairs, as many on a line as fit."""
        text = ", ".join(item.replace(" ", NO_BREAK) for item in items)
        with self.block(head):
            self.lines(*(row.replace(NO_BREAK, " ") for row in wrap(text, WIDTH - len(self._indent))))
        self.line(tail)

    def items_or_line(self, head: str, items: list[str], tail: str = ")") -> None:
        """Add names or pairs: on one line where they fit, else as many on a line as fit."""
        flat = f"{head}{', '.join(items)}{tail}"
        if len(self._indent) + len(flat) <= WIDTH:
            self.line(flat)
        else:
            self.items(head, items, tail)

    def docstring(self, paragraphs: list[str], entries: Sequence[str] = ()) -> None:
        """Add a docstring of paragraphs, the entries indented under the last."""
        first, *others = map(_in_docstring, paragraphs)
        if not others and not entries:
            self.line(f'"""{first}"""')
            return
        self.line(f'"""{first}')
        for paragraph in others:
            self.lines("", paragraph)
        for entry in entries:
            self.line(f"    {_in_docstring(entry)}")
        self.line('"""')

    def text(self) -> str:
        """Everything, with one line feed at the end."""
        return "\n".join(self._lines).rstrip("\n") + "\n"


def sentence(subject: str, label: str) -> str:
    """The subject with its label, if it has one; the text of a specification may bring its own full stop."""
    words = label.rstrip(".")
    return f"{subject}: {words}." if words else f"{subject}."


def _in_docstring(text: str) -> str:
    """Text that stays what it is between three double quotes."""
    return text.replace("\\", "\\\\").replace('"""', r"\"\"\"")


def string(text: str) -> str:
    """A str as Python source in double quotes, as the formatter would write it."""
    body = repr(text)[1:-1]
    if repr(text)[0] == "'":
        body = body.replace("\\'", "'").replace('"', '\\"')
    return f'"{body}"'
