"""Content order: what a frame means to the content that is open on its channel.

Content (0-9-1 section 4.2.6): a method, one content header, body frames until the announced size has come;
all on one channel. Whoever puts frames together asks here, so that all agree on what is out of order, in the
same words. content_order.pxd has the stages and verdicts in C, to be inlined; tests compare them.
"""

from __future__ import annotations

from .._protocol.codes import CONTENT_TOO_LARGE, FRAME_ERROR, RESOURCE_ERROR
from .._typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# The stages of a channel. content_order.pxd has the same numbers, here and below.
NO_CONTENT = 0
BEFORE_HEADER = 1
IN_BODY = 2

# The verdicts.
IN_ORDER = 0
CUT_OFF = 1
NO_METHOD = 2
SECOND_HEADER = 3
OTHER_CLASS = 4
TOO_LARGE = 5
NO_HEADER = 6
TOO_MUCH = 7
TOO_MANY = 8

_TEXTS = {
    CUT_OFF: "{frame} before the end of a {content}",
    NO_METHOD: "content header without a method before it",
    SECOND_HEADER: "second content header after a method",
    OTHER_CLASS: "content header of class {frame} after {content}",
    TOO_LARGE: "body of {size} octets, limit {limit}",
    NO_HEADER: "body without a content header before it",
    TOO_MUCH: "body of {size} octets, {limit} announced",
    TOO_MANY: "more than {limit} messages open",
}
_CODES = {TOO_LARGE: CONTENT_TOO_LARGE, TOO_MUCH: FRAME_ERROR, TOO_MANY: RESOURCE_ERROR}


def judge_method(stage: int) -> int:
    """Return IN_ORDER, or CUT_OFF for a method that comes before the end of a content."""
    return IN_ORDER if stage == NO_CONTENT else CUT_OFF


def judge_header(stage: int, same_class: bool, body_size: int, limit: int) -> int:
    """Return the verdict on a content header.

    Args:
        stage: of its channel.
        same_class: whether it is of the class of the method before it.
        body_size: octets of the body that it announces.
        limit: octets of the largest body to accept.
    """
    if stage != BEFORE_HEADER:
        return NO_METHOD if stage == NO_CONTENT else SECOND_HEADER
    if not same_class:
        return OTHER_CLASS
    return IN_ORDER if body_size <= limit else TOO_LARGE


def judge_body(stage: int, size: int, left: int) -> int:
    """Return the verdict on a body frame of `size` octets, where `left` octets of the body are to come."""
    if stage != IN_BODY:
        return NO_HEADER
    return IN_ORDER if size <= left else TOO_MUCH


def class_name(known: Mapping[int, Any], class_id: int) -> str:
    """Return the name of a content class, or its number where a dialect has none of it.

    Args:
        known: the dialect's property classes, by class id.
        class_id: the class id in a content header.
    """
    properties = known.get(class_id)
    return str(class_id) if properties is None else str(properties.spec.name)


def refusal(
    verdict: int, unexpected_frame: int, *, frame: str = "", content: str = "", size: int = 0, limit: int = 0
) -> tuple[int, str]:
    """Return the reply code and the text of a verdict other than IN_ORDER.

    Args:
        verdict: the verdict.
        unexpected_frame: the dialect's reply code for a frame out of order.
        frame: the name of the method that cuts off, or of the class of the content header.
        content: the name of the method that the content began with.
        size: octets of the body, as announced or as come so far.
        limit: what `size`, or the number of open messages, exceeds.
    """
    text = _TEXTS[verdict].format(frame=frame, content=content, size=size, limit=limit)
    return _CODES.get(verdict, unexpected_frame), text
