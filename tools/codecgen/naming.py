"""From the names of the XML to names of Python.

One rule for every dialect: hyphens and blanks become underscores, classes are written in camel case, and a
name that is already taken by the language or by our own classes gets a trailing underscore.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable

Rule = Callable[[str], str]
"""Makes a Python name of one of the XML."""

OWN_NAMES = frozenset({"ob_base", "self", "spec", "validate"})
"""Taken in every generated class: the C object header, the first parameter, the facts, the assert checker."""

CYTHON_WORDS = frozenset({"cdef", "cpdef", "ctypedef", "cimport", "include", "sizeof"})
"""Words that Cython does not take as the name of an attribute or a parameter."""

C_MACROS = frozenset({"errno", "linux", "unix"})
"""Lower-case words that C compilers or Python's own headers replace, even as members of a struct."""

MODULE_NAMES = frozenset({"FrameDecoder", "MessageDecoder", "Encoder", "DIALECT", "METHODS", "PROPERTIES"})
"""Taken in every generated module: the decoders and the encoder bound to the dialect, and its tables."""

SHARED_NAMES = ("Frame", "Heartbeat", "Message", "PreparedMessage")
"""Names that all dialects share, in every generated module whose dialect has no class of that name."""

FACTS_NAMES = frozenset({"FieldSpec", "MethodSpec", "PropertiesSpec"})
"""Taken in every generated table of facts, which has a name for each method and each class of properties."""

_WORD = re.compile(r"[a-z][a-z0-9_]*\Z")
_TAKEN = frozenset(keyword.kwlist) | OWN_NAMES | CYTHON_WORDS | C_MACROS


class RefusedNameError(ValueError):
    """A name of the XML for which no Python name can be made; the text says why."""


def fold(name: str) -> str:
    """The name as we compare it: lower case, one hyphen for every run of blanks."""
    return "-".join(name.lower().split())


def attribute_name(name: str) -> str:
    """The Python attribute for a field called `name`: `no-wait` gives `no_wait`, `global` gives `global_`."""
    attribute = _identifier(name)
    return f"{attribute}_" if attribute in _TAKEN else attribute


def class_name(*names: str) -> str:
    """The Python class for names of the XML in order: `basic`, `get-ok` give `BasicGetOk`."""
    joined = _camel_case(*names)
    taken = keyword.iskeyword(joined) or joined in MODULE_NAMES or joined in FACTS_NAMES
    return f"{joined}_" if taken else joined


def short_name(method: str) -> str:
    """Return the name of a method inside its class, where the module's own names are free: `Get`, `None_`."""
    joined = _camel_case(method)
    return f"{joined}_" if keyword.iskeyword(joined) else joined


def reply_code_name(error: str) -> str:
    """The exception for a constant that is a reply code: `not-found` gives `AmqpNotFound`."""
    return class_name("amqp", error)


def constant_name(name: str) -> str:
    """The Python constant for `name`: `frame-error` gives `FRAME_ERROR`."""
    constant = _identifier(name).upper()
    return f"{constant}_" if constant in MODULE_NAMES else constant


def module_name(dialect: str) -> str:
    """The module for a dialect that does not name its own: its name with underscores for hyphens and dots."""
    return attribute_name(dialect.replace(".", "-"))


def _camel_case(*names: str) -> str:
    words = "_".join(_identifier(name) for name in names).split("_")
    return "".join(word[:1].upper() + word[1:] for word in words)


def _identifier(name: str) -> str:
    folded = fold(name).replace("-", "_")
    if not _WORD.match(folded):
        raise RefusedNameError(
            f"{name!r} does not begin with a letter and go on with letters, digits and hyphens"
        )
    return folded
