"""Constants of the dialects: what a codec does with each, and the page of the reply codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codecgen.model import Constant, Dialect
from codecgen.naming import reply_code_name

from docs_pages.markup import code, document, heading, link, place, table

_FRAMES = {
    "frame-method": "A decoder returns the method.",
    "frame-header": "A decoder returns a `ContentHeader`.",
    "frame-body": "A decoder returns the octets; `MessageDecoder` joins them.",
    "frame-heartbeat": "A decoder returns `Heartbeat()`.",
    "frame-end": "A decoder raises 501 where a frame ends with another octet.",
    "frame-min-size": "`Connection` refuses to agree on less.",
    "reply-success": "What a close without a fault has for its `reply-code`.",
}
_OPAQUE = "A decoder returns an `OpaquePayload`, since the protocol leaves the content undefined."
_RAISED = {
    311: "a body that is larger than `Limits.body_size`",
    501: "an envelope that is no frame; arguments that are cut off; octets left over",
    502: "a value that its type does not allow, also inside of a field table",
    503: "an unknown class or method; in strict mode, a method of the connection on a channel other than 0",
    504: "content on channel 0; in strict mode, any method on channel 0 but those of the connection",
    505: "frames of a content out of order; 501 in dialects without this code",
    506: "what is beyond one of the other limits of `Limits`",
    540: "a content header with a weight; 505 in dialects with this code",
}
"""The reasons of a `DecodeError`, by reply code."""


def effect(constant: Constant) -> str:
    """Describe what the codec does with a constant; raise KeyError for one that nobody has described."""
    if constant.kind:
        closes = "channel" if constant.kind == "soft" else "connection"
        exception = link(code(reply_code_name(constant.name)), f"reply-codes.md#{constant.name}")
        return f"A reply code that closes the {closes}: {exception}."
    if constant.name.startswith("frame-oob-") or constant.name == "frame-trace":
        return _OPAQUE
    return _FRAMES[constant.name]


def page(dialects: Sequence[Dialect]) -> str:
    """The page of the reply codes."""
    return document(
        "Reply codes",
        "A side that finds a fault closes the channel or the connection, with one of these codes. "
        "[Errors](../errors.md) shows how a program works with them.",
        heading(2, "What peers send", "codes"),
        "`amqpcodec.reply_errors` has an exception for each code, and `REPLY_ERRORS` has them by number.",
        _codes(dialects),
        heading(2, "What decoders raise", "raised"),
        "`DecodeError.reply_code` is one of these. `close_method()` makes the answer to the peer.",
        table(("code", "raised for"), [(str(number), text) for number, text in _RAISED.items()]),
    )


def _codes(dialects: Sequence[Dialect]) -> str:
    found: dict[tuple[int, str], dict[str, Constant]] = {}
    for dialect in dialects:
        for constant in dialect.constants:
            if constant.kind:
                found.setdefault((constant.value, constant.name), {})[dialect.name] = constant
    rows = []
    for (value, name), having in sorted(found.items()):
        constant = next(iter(having.values()))
        rows.append(
            (
                f"{place(name)}{value}",
                code(name),
                code(reply_code_name(name)),
                "channel" if constant.kind == "soft" else "connection",
                f"{constant.label[:1].upper()}{constant.label[1:]}.",
                _dialects(name, having, len(dialects)),
            )
        )
    return table(("code", "name", "exception", "closes", "meaning", "dialects"), rows)


def _dialects(constant: str, having: Mapping[str, Constant], every: int) -> str:
    if len(having) == every:
        return link("all", "differences.md#constants")
    return ", ".join(link(code(each), f"{each}.md#constant.{constant}") for each in having)
