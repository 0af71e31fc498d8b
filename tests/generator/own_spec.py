"""A specification of a protocol that does not exist, made of names and numbers hard to generate for."""

from __future__ import annotations

HARD_KEYWORDS = (
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
    "except", "false", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "none",
    "nonlocal", "not", "or", "pass", "raise", "return", "true", "try", "while", "with", "yield",
)  # fmt: skip
SOFT_KEYWORDS = ("match", "case", "type")
BUILTINS = (
    "bool", "bytes", "dict", "getattr", "hash", "id", "int", "isinstance", "len", "list", "memoryview",
    "object", "print", "property", "range", "repr", "set", "str", "super", "tuple", "valueerror", "vars",
)  # fmt: skip
OUR_OWN = (
    "channel", "name", "fields", "index", "spec", "validate", "self", "writer", "reader", "bits", "flags",
    "flags2", "payload", "properties", "dialect", "class-id", "method-id", "read", "write", "values",
    "encode", "ob-base", "ob-type", "ob-refcnt",
)  # fmt: skip
C_WORDS = (
    "cdef", "cpdef", "cimport", "ctypedef", "include", "char", "const", "double", "enum", "errno", "extern",
    "inline", "linux", "long", "public", "readonly", "register", "short", "sizeof", "static", "struct",
    "switch", "typedef", "union", "unix", "unsigned", "void", "volatile",
)  # fmt: skip
TYPES = ("bit", "octet", "short", "long", "longlong", "shortstr", "longstr", "timestamp", "table", "content")


def fields(names: tuple[str, ...], types: tuple[str, ...]) -> str:
    """A field for each name, of the types in turn."""
    return "\n".join(
        f'    <field name="{name}" type="{types[position % len(types)]}"/>'
        for position, name in enumerate(names)
    )


def numbered(prefix: str, count: int, type_: str) -> str:
    return fields(tuple(f"{prefix}{position}" for position in range(count)), (type_,))


PROPERTY_TYPES = ("shortstr", "bit", "octet", "table", "timestamp", "long", "longstr", "longlong", "short")

SPEC = f"""<?xml version="1.0"?>
<amqp name="own-1" major="1" minor="2" revision="3" port="5999" table-profile="rabbitmq">
  <constant name="frame-end" value="206"/>
  <constant name="not-in-stock" value="399" class="soft-error" label="gone"/>
  <constant name="on-fire" value="599" class="hard-error" label="run"/>
  <domain name="text" type="shortstr"><assert check="notnull"/></domain>
  <domain name="word" type="text"><assert check="length" value="8"/></domain>
  <domain name="plain-word" type="word"><assert check="regexp" value="[a-z]+"/></domain>
  <class name="match" handler="channel" index="65535">
{fields(tuple(f"p{position}" for position in range(30)), PROPERTY_TYPES)}
    <field name="p30" type="table" reserved="1"/>
    <method name="import" index="65535" content="1" synchronous="1">
      <chassis name="server" implement="MUST"/>
      <response name="none"/>
{fields(HARD_KEYWORDS, TYPES)}
    </method>
    <method name="none" index="7">
{fields((*SOFT_KEYWORDS, *BUILTINS), TYPES)}
    </method>
    <method name="case" index="0">
{fields(OUR_OWN, TYPES)}
    </method>
    <method name="c" index="256">
{fields(C_WORDS, TYPES)}
    </method>
  </class>
  <class name="method" handler="channel" index="1">
    <method name="bits" index="1">
{numbered("b", 17, "bit")}
      <field name="between" type="octet"/>
{numbered("c", 9, "bit")}
      <field name="reserved-1" type="short" reserved="1"/>
      <field name="last" type="bit" reserved="1"/>
    </method>
    <method name="word" index="2">
      <field name="text" domain="text"/>
      <field name="word" domain="word"/>
      <field name="plain" domain="plain-word"/>
    </method>
    <method name="rich" index="3" content="1">
      <field name="when" type="timestamp"/>
      <field name="what" type="content"/>
      <field name="how" type="table"/>
    </method>
    <method name="empty" index="4"/>
    <method name="octets" index="5">
{numbered("b", 8, "bit")}
      <field name="between" type="octet"/>
{numbered("c", 8, "bit")}
    </method>
  </class>
</amqp>
"""
