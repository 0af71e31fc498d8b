"""What becomes of the methods of `own_spec` in columns, as JSON; run as own_outcomes.py is."""

from __future__ import annotations

import json
from typing import Any

import own
from own_outcomes import examples

from amqpcodec import arrow


def contents() -> list[dict[str, Any]]:
    """Every content method and its way there and back."""
    found = []
    for cls in own.METHODS.values():
        if not cls.spec.content:
            continue
        properties = own.PROPERTIES[cls.spec.class_id]
        for method, header in zip(examples(cls), examples(properties) * 9, strict=False):
            octets = own.encode_message(5, method, header, b"body", frame_max=0)
            rows = arrow.decode_messages(octets, dialect=own)
            # Numbers too large are null, tables become texts: neither can come back as it was.
            whole = (
                rows.column("_error").null_count == 1 and not has_tables(method) and not has_tables(header)
            )
            back = arrow.encode_messages(rows, dialect=own, frame_max=0) == octets if whole else None
            found.append({"row": str(rows.to_pylist()), "back": back})
    return found


def has_tables(record: Any) -> bool:
    return any(field.type == "table" and getattr(record, field.attribute) for field in record.spec.fields)


def methods() -> list[str]:
    octets = b"".join(
        own.encode_method(5, method) for cls in own.METHODS.values() for method in examples(cls)
    )
    return [str(row) for row in arrow.decode_methods(octets, dialect=own).to_pylist()]


names = arrow.schema("messages", dialects=[own]).names
print(json.dumps({"methods": methods(), "contents": contents(), "names": names}))
