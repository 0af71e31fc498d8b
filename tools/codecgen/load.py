"""From the XML of a dialect to the model the emitters read, with everything checked on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from keyword import iskeyword
from pathlib import Path

from codecgen import naming
from codecgen.asserts import load_asserts
from codecgen.elements import Element, read_elements
from codecgen.extend import extend
from codecgen.model import (
    Class,
    Constant,
    Correction,
    Dialect,
    Domain,
    Field,
    Method,
    Source,
    protocol_header,
)
from codecgen.overlay import corrected, read_overlay
from codecgen.wire_types import WIRE_TYPES

PROJECT_DIALECTS = ("amqp-0-8", "qpid-0-8", "amqp-0-9", "amqp-0-9-1", "rabbitmq-0-9-1")
"""The dialects of this project, in the order they are generated and explained."""

TABLE_PROFILES = ("0-8", "qpid", "0-9", "wg-0-9-1", "rabbitmq", "rabbitmq-nan")
STRENGTHS = ("MUST", "SHOULD", "MAY")
KINDS = {"soft-error": "soft", "hard-error": "hard"}
FIXED = {"frame-method": 1, "frame-header": 2, "frame-body": 3, "frame-heartbeat": 8, "frame-end": 206}
"""The constants that the codec has built in, and so cannot take another value for."""

OPAQUE_TYPES = ("frame-oob-method", "frame-oob-header", "frame-oob-body", "frame-trace")
OPAQUE_TYPE_LIMIT = 31
"""The frame types whose payload is passed on as it is: the codec keeps them as the bits of one number."""


def load_project(root: Path, *, corrections: bool = True) -> list[Dialect]:
    """Every dialect of the repository at `root`, from its spec/ directory; SpecError where one is wrong."""
    return [
        load_dialect(root / "spec" / f"{name}.xml", root=root, corrections=corrections)
        for name in PROJECT_DIALECTS
    ]


def load_dialect(path: Path, *, root: Path | None = None, corrections: bool = True) -> Dialect:
    """The dialect of one XML file, after its base (`extends`) and its overlay have been taken into account.

    Files under `root` are named relative to it in messages and sources. The overlay is the file of the same
    name in overlays/ next to the XML, if there is one; `corrections=False` leaves it out.
    """
    tree, sources = _read(path, root, ())
    overlay = path.parent / "overlays" / f"{path.stem}.toml"
    made: tuple[Correction, ...] = ()
    if corrections and overlay.is_file():
        made, source = read_overlay(overlay, _shown(overlay, root))
        tree = corrected(tree, made, source.path)
        sources = (*sources, source)
    return _Loader(tree, path.stem).dialect(sources, made)


def _read(path: Path, root: Path | None, chain: tuple[Path, ...]) -> tuple[Element, tuple[Source, ...]]:
    tree, source = read_elements(path, _shown(path, root))
    base = tree.get("extends")
    if base is None:
        return tree, (source,)
    base_path = path.parent / base
    if base_path in (*chain, path):
        tree.fail(f"extends {base!r}, which extends this file")
    if not base_path.is_file():
        tree.fail(f"extends {base!r}, which does not exist")
    base_tree, sources = _read(base_path, root, (*chain, path))
    return extend(base_tree, tree), (*sources, source)


def _shown(path: Path, root: Path | None) -> str:
    if root is not None and path.resolve().is_relative_to(root.resolve()):
        return path.resolve().relative_to(root.resolve()).as_posix()
    return path.as_posix()


class _Loader:
    """Checks one merged and corrected tree and builds its dialect."""

    def __init__(self, tree: Element, stem: str) -> None:
        self._tree = tree
        self._stem = stem
        _distinct(tree.of("domain"))
        self._domain_elements = {element.need("name"): element for element in tree.of("domain")}
        self._domains = {name: self._domain(name, ()) for name in self._domain_elements}

    def dialect(self, sources: tuple[Source, ...], corrections: tuple[Correction, ...]) -> Dialect:
        tree = self._tree
        version = (_octet(tree, "major"), _octet(tree, "minor"))
        revision = None if tree.get("revision") is None else _octet(tree, "revision")
        header = protocol_header(*version, revision)
        name = tree.get("name") or naming.fold(self._stem)
        profile = tree.get("table-profile") or "rabbitmq"
        if profile not in TABLE_PROFILES:
            tree.fail(f"table-profile {profile!r} is not one of {', '.join(TABLE_PROFILES)}")
        _distinct(tree.of("class"), "index")
        _python_names(tree.of("class"), naming.class_name)
        dialect = Dialect(
            name=name,
            module=_module(tree, name),
            major=version[0],
            minor=version[1],
            revision=revision,
            port=_number(tree, "port") if tree.get("port") else 5672,
            label=tree.label,
            table_profile=profile,
            accepted_headers=(header, *_further_headers(tree, header)),
            constants=self._constants(),
            domains=tuple(self._domains.values()),
            classes=tuple(self._class(element) for element in tree.of("class")),
            sources=sources,
            corrections=corrections,
        )
        _no_clash(self._module_names(dialect))
        return dialect

    def _module_names(self, dialect: Dialect) -> Iterator[tuple[Element, str]]:
        """Return the things that the generated module names, with their names."""
        for element, constant in zip(self._tree.of("constant"), dialect.constants, strict=True):
            yield element, constant.python_name
        for element, cls in zip(self._tree.of("class"), dialect.classes, strict=True):
            yield element, cls.python_name
            if cls in dialect.content_classes:
                yield element, cls.properties_name
            for below, method in zip(element.of("method"), cls.methods, strict=True):
                yield below, method.python_name

    def _domain(self, name: str, chain: tuple[str, ...]) -> Domain:
        """The domain of a declared name, its asserts after those of the domain it is made of."""
        element = self._domain_elements[name]
        type_ = element.need("type")
        if type_ in chain or (type_ == name and name not in WIRE_TYPES):
            element.fail(f"domain {type_!r} is defined by itself")
        if name in WIRE_TYPES and type_ != name:
            element.fail(f"{name!r} is a type of the wire format and cannot be another name for {type_!r}")
        if type_ in WIRE_TYPES:
            return Domain(name, type_, element.label, load_asserts(element, type_, None))
        if type_ not in self._domain_elements:
            element.fail(f"unknown type {type_!r}")
        under = self._domain(type_, (*chain, name))
        own = load_asserts(element, under.type, None)
        return Domain(name, under.type, element.label, under.asserts + own)

    def _constants(self) -> tuple[Constant, ...]:
        elements = self._tree.of("constant")
        _distinct(elements)
        _python_names(elements, naming.constant_name)
        constants = tuple(_constant(element) for element in elements)
        codes: dict[int, str] = {}
        for constant, element in zip(constants, elements, strict=True):
            if constant.kind and codes.setdefault(constant.value, constant.name) != constant.name:
                element.fail(f"value {constant.value} is already that of the error {codes[constant.value]!r}")
        errors = (element for constant, element in zip(constants, elements, strict=True) if constant.kind)
        _python_names(errors, naming.reply_code_name)
        return constants

    def _class(self, element: Element) -> Class:
        methods = element.of("method")
        _distinct(methods, "index")
        _python_names(methods, naming.short_name)
        server, client = _sides(element)
        return Class(
            name=element.need("name"),
            class_id=_number(element, "index"),
            python_name=naming.class_name(element.need("name")),
            handler=element.get("handler"),
            server=server,
            client=client,
            label=element.label,
            properties=self._fields(element),
            methods=tuple(self._method(element, method) for method in methods),
        )

    def _method(self, owner: Element, element: Element) -> Method:
        name = element.need("name")
        responses = element.of("response")
        _distinct(responses)
        for response in responses:
            self._check_response(owner, response)
        server, client = _sides(element)
        return Method(
            class_name=owner.need("name"),
            class_id=_number(owner, "index"),
            name=name,
            method_id=_number(element, "index"),
            python_name=naming.class_name(owner.need("name"), name),
            short_name=naming.short_name(name),
            synchronous=_flag(element, "synchronous"),
            content=_flag(element, "content"),
            deprecated=_flag(element, "deprecated"),
            responses=tuple(response.need("name") for response in responses),
            server=server,
            client=client,
            label=element.label,
            fields=self._fields(element, owner),
        )

    def _check_response(self, owner: Element, response: Element) -> None:
        """Refuse the name of a method that there is nowhere; Qpid's 0-8 file has one of another class."""
        name = response.need("name")
        if all(cls.named("method", name) is None for cls in self._tree.of("class")):
            response.fail(f"class {owner.need('name')!r} has no method of this name, nor has another")

    def _fields(self, holder: Element, owner: Element | None = None) -> tuple[Field, ...]:
        """The arguments of a method of class `owner`, or the properties of a class (without `owner`)."""
        elements = holder.of("field")
        _distinct(elements)
        _python_names(elements, naming.attribute_name)
        return tuple(self._field(element, owner) for element in elements)

    def _field(self, element: Element, owner: Element | None) -> Field:
        domain = self._domain_of(element)
        if domain.type == "content" and owner is None:
            element.fail("a content property cannot be of type 'content'")
        return Field(
            name=element.need("name"),
            attribute=naming.attribute_name(element.need("name")),
            type=domain.type,
            domain=domain.name,
            reserved=_flag(element, "reserved"),
            label=element.label or domain.label,
            asserts=domain.asserts + load_asserts(element, domain.type, owner),
            see=tuple(each.need("name") for each in element.of("see")),
        )

    def _domain_of(self, element: Element) -> Domain:
        domain, type_ = element.get("domain"), element.get("type")
        if (domain is None) == (type_ is None):
            element.fail("a field names either a domain or a type")
        name = domain or type_ or ""
        if type_ is not None and type_ not in WIRE_TYPES:
            element.fail(f"unknown type {type_!r}")
        if name in self._domains:
            return self._domains[name]
        if name not in WIRE_TYPES:
            element.fail(f"unknown domain {domain!r}")
        return Domain(name, name, "", ())


def _constant(element: Element) -> Constant:
    kind = element.get("class")
    if kind is not None and naming.fold(kind) not in KINDS:
        element.fail(f"class {kind!r} is not one of {', '.join(KINDS)}")
    name = element.need("name")
    value = _number(element, "value", 0xFFFF if kind else 0xFFFFFFFF)
    if value != FIXED.get(name, value):
        element.fail(f"value {value} is not the {FIXED[name]} that the codec has built in")
    if name in OPAQUE_TYPES and value > OPAQUE_TYPE_LIMIT:
        element.fail(f"value {value} is not a frame type of 0 to {OPAQUE_TYPE_LIMIT}")
    return Constant(
        name=name,
        value=value,
        kind=None if kind is None else KINDS[naming.fold(kind)],
        label=element.label,
        python_name=naming.constant_name(name),
    )


def _module(tree: Element, name: str) -> str:
    module = tree.get("module")
    if module is not None and (not (module.isidentifier() and module.islower()) or iskeyword(module)):
        tree.fail(f"module {module!r} is not the name of a Python module")
    try:
        return module or naming.module_name(name)
    except naming.RefusedNameError as error:
        tree.fail(f"no module name can be made of the dialect's: {error}")


def _further_headers(tree: Element, ours: bytes) -> list[bytes]:
    """The headers of `accepted-headers`: versions as four numbers with dots, separated by blanks."""
    headers: list[bytes] = []
    for word in (tree.get("accepted-headers") or "").split():
        numbers = word.split(".")
        if len(numbers) != 4 or not all(part.isdecimal() and int(part) < 256 for part in numbers):
            tree.fail(f"accepted-headers: {word!r} is not four numbers of 0 to 255 with dots between")
        header = b"AMQP" + bytes(int(part) for part in numbers)
        if header == ours or header in headers:
            tree.fail(f"accepted-headers: {word!r} is accepted already")
        headers.append(header)
    return headers


def _sides(element: Element) -> tuple[str | None, str | None]:
    chassis = element.of("chassis")
    _distinct(chassis)
    for each in chassis:
        if each.get("name") not in ("server", "client"):
            each.fail("a chassis is 'server' or 'client'")
        if each.get("implement") not in STRENGTHS:
            each.fail(f"implement {each.get('implement')!r} is not one of {', '.join(STRENGTHS)}")
    sides = {each.get("name"): each.get("implement") for each in chassis}
    return sides.get("server"), sides.get("client")


def _flag(element: Element, attribute: str) -> bool:
    text = element.get(attribute)
    if text not in (None, "0", "1"):
        element.fail(f"{attribute} {text!r} is neither '1' nor '0'")
    return text == "1"


def _number(element: Element, attribute: str, limit: int = 0xFFFF) -> int:
    text = element.need(attribute)
    if not (text.isascii() and text.isdecimal() and int(text) <= limit):
        element.fail(f"{attribute} {text!r} is not a number of 0 to {limit}")
    return int(text)


def _octet(element: Element, attribute: str) -> int:
    return _number(element, attribute, 0xFF)


def _distinct(elements: Iterable[Element], *further: str) -> None:
    """Refuse two elements with one name, or one value in a further numeric attribute."""
    for attribute in ("name", *further):
        seen: dict[str | int, Element] = {}
        for element in elements:
            key = _number(element, attribute) if further and attribute in further else element.need(attribute)
            first = seen.setdefault(key, element)
            if first is not element:
                where = f"{first.file}:{first.line}"
                element.fail(f"{attribute} {key!r} is already that of {first.get('name')!r} at {where}")


def _python_names(elements: Iterable[Element], make: naming.Rule) -> None:
    """Refuse names Python cannot have, and two elements that would come out with one Python name."""
    named: list[tuple[Element, str]] = []
    for element in elements:
        try:
            named.append((element, make(element.need("name"))))
        except naming.RefusedNameError as error:
            element.fail(str(error))
    _no_clash(named)


def _no_clash(named: Iterable[tuple[Element, str]]) -> None:
    """Refuse two elements with one Python name."""
    seen: dict[str, Element] = {}
    for element, name in named:
        first = seen.setdefault(name, element)
        if first is not element:
            where = f"{first.file}:{first.line}"
            element.fail(f"gives the Python name {name}, as {first.get('name')!r} at {where} does")
