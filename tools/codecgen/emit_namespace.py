"""The thin modules users import: each gives out the names of the build in use."""

from __future__ import annotations

from codecgen.code import Code, string
from codecgen.model import Dialect


def render_namespace(dialect: Dialect, target: str) -> str:
    """The module of a dialect; `target` is the path of its generated text without `_py` or `_c`."""
    code = Code()
    code.docstring([f"{dialect.label or dialect.name}, in the build that `amqpcodec.IMPL` names."])
    code.lines(
        "",
        "from __future__ import annotations",
        "",
        "from amqpcodec._typing import TYPE_CHECKING",
        "",
        "if TYPE_CHECKING:",
        f"    from {target}_py import *",
        f"    from {target}_py import __all__ as __all__",
        "else:",
        "    from amqpcodec._backend import export",
        "",
        f"    export({string(target)}, globals())",
    )
    return code.text()


def render_index(dialects: list[Dialect]) -> str:
    """The module that lists the dialects."""
    code = Code()
    code.lines('"""The dialects: name in the specification to name of the module."""', "")
    with code.block("DIALECTS = {"):
        for dialect in dialects:
            code.line(f"{string(dialect.name)}: {string(dialect.module)},")
    code.line("}")
    return code.text()
