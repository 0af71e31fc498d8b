"""The reply codes: their numbers, and one exception class each."""

from __future__ import annotations

from codecgen.code import Code, sentence, string
from codecgen.elements import SpecError
from codecgen.model import Constant, Dialect
from codecgen.naming import constant_name, reply_code_name

_CLOSES = {"soft": "channel", "hard": "connection"}


def render_codes(dialects: list[Dialect]) -> str:
    """Return the module of the numbers of all reply codes of the dialects, which imports nothing.

    Raises:
        SpecError: two dialects mean different things by one code.
    """
    codes = _reply_codes(dialects)
    code = Code()
    code.lines(
        '"""The reply codes of errors: numbers, names, and which of them close the channel alone."""',
        "",
        "from __future__ import annotations",
        "",
    )
    for constant in codes:
        code.line(f"{constant_name(constant.name)} = {constant.value}")
    code.line()
    with code.block("REPLY_NAMES: dict[int, str] = {"):
        for constant in codes:
            code.line(f"{constant.value}: {string(constant.name)},")
    code.line("}")
    soft = [str(constant.value) for constant in codes if _CLOSES[str(constant.kind)] == "channel"]
    code.line(f"SOFT = frozenset({{{', '.join(soft)}}})")
    return code.text()


def render_reply_codes(dialects: list[Dialect]) -> str:
    """The module of exception classes for all reply codes of the dialects.

    Raises:
        SpecError: two dialects mean different things by one code.
    """
    codes = _reply_codes(dialects)
    code = Code()
    code.lines(
        '"""The reply codes as exceptions, for what a peer says in connection.close and channel.close."""',
        "",
        "from __future__ import annotations",
        "",
        "from amqpcodec.errors import ReplyError",
    )
    for constant in codes:
        code.lines("", "")
        with code.block(f"class {reply_code_name(constant.name)}(ReplyError):"):
            closes = _CLOSES[str(constant.kind)]
            subject = f"{constant.value} {constant.name}, closes the {closes}"
            code.docstring([sentence(subject, constant.label)])
            code.lines(
                "",
                f"code = {constant.value}",
                f"name = {string(constant.name)}",
                f"closes = {string(closes)}",
            )
    code.lines("", "")
    with code.block("REPLY_ERRORS: dict[int, type[ReplyError]] = {"):
        for constant in codes:
            code.line(f"{constant.value}: {reply_code_name(constant.name)},")
    code.line("}")
    code.line()
    names = sorted([reply_code_name(constant.name) for constant in codes] + ["REPLY_ERRORS"])
    code.items("__all__ = [", [string(name) for name in names], "]")
    return code.text()


def _reply_codes(dialects: list[Dialect]) -> list[Constant]:
    codes: dict[int, Constant] = {}
    for dialect in dialects:
        for constant in dialect.constants:
            if constant.kind is None:
                continue
            known = codes.setdefault(constant.value, constant)
            if (known.name, known.kind) != (constant.name, constant.kind):
                clash = f"reply code {constant.value} is {known.name} in another dialect"
                raise SpecError(f"{dialect.name}: {clash}")
    return [codes[value] for value in sorted(codes)]
