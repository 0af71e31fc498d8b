"""Methods, properties and frames as Python objects."""

from __future__ import annotations

import copy
import gc
import inspect
from types import ModuleType
from typing import Any

import pytest
from support import oracle
from support.implementation import Implementation
from support.outcomes import describe

from amqpcodec import DIALECTS, AmqpError
from amqpcodec.spec import Assert
from amqpcodec.types import EPOCH, InlineContent

SAMPLES: dict[str, Any] = {
    "bit": True,
    "octet": 7,
    "short": 700,
    "long": 70000,
    "longlong": 2**40,
    "shortstr": "text",
    "longstr": b"octets",
    "timestamp": EPOCH,
    "table": {"key": "value"},
    "content": InlineContent(b"body"),
}
ZEROS: dict[str, Any] = {
    "bit": False,
    "octet": 0,
    "short": 0,
    "long": 0,
    "longlong": 0,
    "shortstr": "",
    "longstr": b"",
    "timestamp": EPOCH,
    "table": {},
    "content": InlineContent(b""),
}


def filled(cls: Any) -> Any:
    """An instance with a value other than the default in every field."""
    return cls(**{field.attribute: SAMPLES[field.type] for field in cls.spec.fields})


def condition(fact: dict[str, Any]) -> Assert:
    """Return the check that is so in the facts."""
    value = fact.get("value") or fact.get("rule") or ", ".join(fact.get("values", ()))
    return Assert(fact["check"], value, f"{fact['method']}.{fact['field']}" if "method" in fact else "")


def open_fields(cls: Any) -> list[Any]:
    return [field for field in cls.spec.fields if not field.reserved or cls.__name__.endswith("Properties")]


def classes(codec: ModuleType) -> list[Any]:
    return [*codec.METHODS.values(), *codec.PROPERTIES.values()]


class TestConstruction:
    def test_by_position_in_wire_order(self, codec: ModuleType) -> None:
        for cls in classes(codec):
            values = [SAMPLES[field.type] for field in open_fields(cls)]
            record = cls(*values)
            assert [getattr(record, field.attribute) for field in open_fields(cls)] == values

    def test_by_keyword(self, codec: ModuleType) -> None:
        for cls in classes(codec):
            record = filled(cls)
            for field in cls.spec.fields:
                assert getattr(record, field.attribute) == SAMPLES[field.type]

    def test_defaults_are_zero_for_methods(self, codec: ModuleType) -> None:
        for cls in codec.METHODS.values():
            for field in cls.spec.fields:
                value = getattr(cls(), field.attribute)
                assert describe(value) == describe(ZEROS[field.type])

    def test_defaults_are_absent_for_properties(self, codec: ModuleType) -> None:
        for cls in codec.PROPERTIES.values():
            assert [getattr(cls(), field.attribute) for field in cls.spec.fields] == [None] * len(
                cls.spec.fields
            )

    def test_reserved_fields_are_by_keyword_only(self, codec: ModuleType, dialect: str) -> None:
        reserved = 0
        for cls in codec.METHODS.values():
            attributes = {field.attribute for field in cls.spec.fields if field.reserved}
            reserved += len(attributes)
            assert not attributes & set(cls.__match_args__)
            with pytest.raises(TypeError):
                cls(*[SAMPLES[field.type] for field in open_fields(cls)], 0)
        assert bool(reserved) == ("0-9-1" in dialect)

    def test_unknown_keywords_are_refused(self, codec: ModuleType) -> None:
        for cls in classes(codec):
            with pytest.raises(TypeError):
                cls(no_such_field=1)

    def test_mutable_defaults_are_not_shared(self, codec: ModuleType) -> None:
        tables = 0
        for cls in codec.METHODS.values():
            for field in cls.spec.fields:
                if field.type == "table":
                    tables += 1
                    one, two = cls(), cls()
                    getattr(one, field.attribute)["key"] = "value"
                    assert getattr(two, field.attribute) == {}
        assert tables > 3


class TestBehaviour:
    def test_attributes_can_be_assigned(self, codec: ModuleType) -> None:
        for cls in classes(codec):
            record = cls()
            for field in cls.spec.fields:
                setattr(record, field.attribute, SAMPLES[field.type])
            assert record == filled(cls)

    def test_in_the_compiled_build_the_collector_follows_what_can_be_part_of_a_cycle(
        self, both: tuple[Implementation, Implementation]
    ) -> None:
        compiled, _ = both
        for cls in (cls for name in DIALECTS for cls in classes(compiled.dialect(name))):
            can_hold = any(field.type in ("table", "content") for field in cls.spec.fields)
            assert gc.is_tracked(cls()) == can_hold, cls

    def test_other_attributes_cannot(self, codec: ModuleType) -> None:
        for cls in classes(codec):
            with pytest.raises(AttributeError):
                cls().no_such_field = 1

    def test_equal_by_class_and_values(self, codec: ModuleType) -> None:
        for cls in classes(codec):
            assert filled(cls) == filled(cls)
            for field in cls.spec.fields:
                other = filled(cls)
                setattr(other, field.attribute, "another value")
                assert other != filled(cls)
        assert codec.Tx.Select() != codec.Tx.Commit()
        assert codec.Tx.Select() != "TxSelect()"

    def test_not_hashable(self, codec: ModuleType) -> None:
        for cls in classes(codec):
            with pytest.raises(TypeError, match="unhashable"):
                hash(cls())

    def test_repr_names_the_fields(self, codec: ModuleType) -> None:
        namespace = {"datetime": __import__("datetime"), "InlineContent": InlineContent}
        namespace |= {cls.__name__: cls for cls in classes(codec)}
        for cls in classes(codec):
            assert eval(repr(filled(cls)), namespace) == filled(cls)

    def test_repr_leaves_out_what_says_nothing(self, codec: ModuleType) -> None:
        assert repr(codec.BasicProperties(priority=0)) == "BasicProperties(priority=0)"
        assert "reserved" not in repr(codec.Basic.Publish())
        assert repr(codec.Tx.Select()) == "TxSelect()"

    def test_match_statement(self, amqp: ModuleType) -> None:
        match amqp.Basic.Deliver("tag", 5, routing_key="key"):
            case amqp.Basic.Ack():
                pytest.fail("not an ack")
            case amqp.Basic.Deliver(tag, number, routing_key=key):
                assert (tag, number, key) == ("tag", 5, "key")
            case _:
                pytest.fail("no match")

    def test_match_args_are_the_positional_fields(self, codec: ModuleType) -> None:
        for cls in classes(codec):
            assert cls.__match_args__ == tuple(field.attribute for field in open_fields(cls))


class TestCopies:
    def test_copies_are_shallow(self, codec: ModuleType) -> None:
        for cls in classes(codec):
            record = filled(cls)
            twin = copy.copy(record)
            assert twin == record
            assert twin is not record
            for field in cls.spec.fields:
                assert getattr(twin, field.attribute) is getattr(record, field.attribute)

    def test_deep_copies_share_nothing(self, codec: ModuleType) -> None:
        for cls in classes(codec):
            record = filled(cls)
            twin = copy.deepcopy(record)
            # A deep copy goes by way of pickle, and so may be of the build in use.
            assert describe(twin) == describe(record)
            for field in cls.spec.fields:
                if field.type == "table":
                    assert getattr(twin, field.attribute) is not getattr(record, field.attribute)

    def test_frames_and_messages(self, impl: Implementation, amqp: ModuleType) -> None:
        for value in public_values(impl, amqp):
            assert describe(copy.copy(value)) == describe(value)
            assert describe(copy.deepcopy(value)) == describe(value)


def public_values(impl: Implementation, amqp: ModuleType) -> list[Any]:
    """One of each of the classes that all dialects share."""
    records = impl.records
    properties = amqp.BasicProperties(headers={"k": "v"})
    return [
        records.Frame(1, 2, amqp.Basic.Ack(3)),
        records.ContentHeader(properties, 5, 1),
        records.Heartbeat(),
        records.OpaquePayload(b"octets"),
        records.ProtocolHeader(b"AMQP\0\0\x09\1"),
        impl.raw_table(b"\x01kV", "qpid"),
        records.Message(1, amqp.Basic.Publish(), properties, b"body"),
        records.Message(1, amqp.Basic.Publish(), None, [b"a", b"b"], False),
    ]


class TestFrames:
    def test_equal_by_values(self, impl: Implementation, amqp: ModuleType) -> None:
        ours, theirs = public_values(impl, amqp), public_values(impl, amqp)
        for position, one in enumerate(ours):
            assert one == theirs[position]
            assert all(one != other for at, other in enumerate(theirs) if at != position)
            assert one != "another type"

    def test_repr_can_be_read_back(self, impl: Implementation, amqp: ModuleType) -> None:
        namespace = vars(impl.records) | vars(amqp) | {"RawTable": impl.raw_table}
        for value in public_values(impl, amqp):
            assert eval(repr(value), dict(namespace)) == value

    def test_only_heartbeats_are_hashable(self, impl: Implementation, amqp: ModuleType) -> None:
        for value in public_values(impl, amqp):
            if type(value).__name__ == "Heartbeat":
                assert hash(value) == hash(impl.records.Heartbeat())
            else:
                with pytest.raises(TypeError, match="unhashable"):
                    hash(value)

    def test_attributes_can_be_assigned(self, impl: Implementation, amqp: ModuleType) -> None:
        for value in public_values(impl, amqp):
            for name in getattr(value, "__match_args__", ()):
                setattr(value, name, 17)
                assert getattr(value, name) == 17

    def test_defaults(self, impl: Implementation, amqp: ModuleType) -> None:
        assert impl.records.ContentHeader(amqp.BasicProperties(), 5).weight == 0
        assert impl.records.Message(1, amqp.Basic.Publish(), None, b"").complete is True


class TestReserved:
    def test_values_survive_decoding_and_encoding(self, codec: ModuleType) -> None:
        for cls in codec.METHODS.values():
            octets = codec.encode_method(1, filled(cls))
            [frame] = codec.FrameDecoder().feed(octets)
            assert frame.payload == filled(cls)
            assert codec.encode_frame(frame) == octets


class TestSpec:
    """The facts of every class are those of the facts files."""

    def test_methods(self, codec: ModuleType, dialect: str) -> None:
        assert len(codec.METHODS) == len(oracle.methods(dialect))
        for name, (group, method) in oracle.methods(dialect).items():
            spec = codec.METHODS[group["index"], method["index"]].spec
            assert (spec.name, spec.class_id, spec.method_id) == (name, group["index"], method["index"])
            assert spec.index == group["index"] << 16 | method["index"]
            for fact in ("synchronous", "content", "deprecated"):
                assert getattr(spec, fact) == method[fact], (name, fact)
            sides = (method["server"], method["client"])
            # The facts have the two sides of it the wrong way round, see the overlay.
            swapped = name in ("connection.update-secret", "connection.update-secret-ok")
            assert (spec.server, spec.client) == (sides[::-1] if swapped else sides), name
            corrected = ["recover-ok"] if name == "basic.recover" and "0-9-1" in dialect else []
            if name == "exchange.bound":
                corrected = ["bound-ok"]
            assert list(spec.responses) == method["responses"] or list(spec.responses) == corrected
            self.check_fields(dialect, spec.fields, method["fields"])

    def test_properties(self, codec: ModuleType, dialect: str) -> None:
        assert {cls.spec.name for cls in codec.PROPERTIES.values()} >= set(oracle.contents(dialect))
        for class_id, cls in codec.PROPERTIES.items():
            [group] = [group for group in oracle.facts(dialect)["classes"] if group["index"] == class_id]
            assert (cls.spec.name, cls.spec.class_id) == (group["name"], class_id)
            self.check_fields(dialect, cls.spec.fields, group["properties"])

    def check_fields(self, dialect: str, fields: Any, facts: list[dict[str, Any]]) -> None:
        domains = {domain["name"]: domain["asserts"] for domain in oracle.facts(dialect)["domains"]}
        assert [field.name for field in fields] == [fact["name"] for fact in facts]
        for field, fact in zip(fields, facts, strict=True):
            assert field.type == fact["type"]
            assert field.reserved == fact.get("reserved", False)
            # A domain's checks hold for all its fields.
            checks = [*domains.get(fact["domain"], ()), *fact.get("asserts", ())]
            assert list(field.asserts) == list(dict.fromkeys(map(condition, checks)))

    def test_constants_and_headers(self, codec: ModuleType, dialect: str) -> None:
        facts = oracle.facts(dialect)
        constants = {fact["name"]: fact["value"] for fact in facts["constants"]}
        assert dict(codec.DIALECT.constants) == constants
        for name, value in constants.items():
            assert getattr(codec, name.upper().replace("-", "_")) == value
        protocol = facts["protocol"]
        accepted = [protocol["protocol_header"], *protocol["also_seen_headers"]]
        assert [header.hex() for header in codec.DIALECT.accepted_headers] == accepted
        assert codec.DIALECT.name == dialect
        assert codec.DIALECT.port == protocol["port"]
        assert codec.DIALECT.version == (protocol["major"], protocol["minor"], protocol["revision"])

    def test_classes_are_reached_by_either_name(self, codec: ModuleType) -> None:
        for cls in codec.METHODS.values():
            class_name, _, method_name = cls.spec.name.partition(".")
            group = getattr(codec, class_name.title().replace("-", ""))
            assert getattr(group, method_name.title().replace("-", "")) is cls
            assert getattr(codec, cls.__name__) is cls

    def test_facts_cannot_be_changed(self, codec: ModuleType) -> None:
        for mapping in (codec.METHODS, codec.PROPERTIES, codec.DIALECT.constants):
            with pytest.raises(TypeError):
                mapping["new"] = 1
        with pytest.raises(AttributeError):
            codec.Basic.Ack.spec.name = "new"


class TestBuilds:
    """Both builds look the same from outside."""

    def test_public_names(self, both: tuple[Implementation, Implementation], dialect: str) -> None:
        one, two = (impl.dialect(dialect) for impl in both)
        assert one.__all__ == two.__all__
        assert all(hasattr(one, name) and hasattr(two, name) for name in one.__all__)
        for module in ("records", "tables"):
            assert both[0].kernel(module).__all__ == both[1].kernel(module).__all__

    def test_fields_and_specs(self, both: tuple[Implementation, Implementation], dialect: str) -> None:
        one, two = (classes(impl.dialect(dialect)) for impl in both)
        assert [cls.__name__ for cls in one] == [cls.__name__ for cls in two]
        for ours, theirs in zip(one, two, strict=True):
            assert ours.spec == theirs.spec
            assert ours.__match_args__ == theirs.__match_args__

    def test_positional_and_keyword_arguments(self, both: tuple[Implementation, Implementation]) -> None:
        compiled, pure = both
        for dialect in DIALECTS:
            for cls in classes(pure.dialect(dialect)):
                twin = getattr(compiled.dialect(dialect), cls.__name__)
                for parameter in inspect.signature(cls).parameters.values():
                    if parameter.kind is parameter.KEYWORD_ONLY:
                        twin(**{parameter.name: parameter.default})
                positional = [
                    parameter.default
                    for parameter in inspect.signature(cls).parameters.values()
                    if parameter.kind is not parameter.KEYWORD_ONLY
                ]
                assert describe(twin(*positional)) == describe(cls(*positional)) == describe(cls())
                with pytest.raises(TypeError):
                    twin(*positional, None)

    def test_calls_mean_the_same_for_a_class_and_its_subclass(
        self, both: tuple[Implementation, Implementation]
    ) -> None:
        calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
            ((), {}),
            (("a",), {}),
            (("a", "b"), {"mandatory": True}),
            ((), {"routing_key": "b", "exchange": "a"}),
            ((), {"".join(("routing", "_key")): "b"}),  # a name that is not interned
            (("a",), {"exchange": "b"}),
            ((), {"nothing": 1}),
            (("a", "b", True, True, 5, 6), {}),
        ]

        def outcome(cls: type[Any], positional: tuple[Any, ...], named: dict[str, Any]) -> object:
            try:
                made = cls(*positional, **named)
            except TypeError as error:
                return type(error)
            return type(made).__name__, [getattr(made, field.attribute) for field in cls.spec.fields]

        def outcomes(cls: type[Any]) -> list[object]:
            class Marked(cls):  # type: ignore[misc]
                def __init__(self, *positional: Any, **named: Any) -> None:
                    super().__init__(*positional, **named)
                    self.routing_key += "!"

            return [outcome(made, *call) for made in (cls, Marked) for call in calls]

        compiled, pure = (outcomes(impl.dialect("rabbitmq-0-9-1").Basic.Publish) for impl in both)
        assert compiled == pure

    def test_a_deleted_field_is_refused_and_does_no_harm(self, impl: Implementation) -> None:
        codec = impl.dialect("rabbitmq-0-9-1")
        method = codec.Basic.Publish("a", "b")
        del method.routing_key
        with pytest.raises((AmqpError, AttributeError)):
            codec.encode_method(1, method)
        method.routing_key = "c"
        assert codec.encode_method(1, method) == codec.encode_method(1, codec.Basic.Publish("a", "c"))

    @pytest.mark.parametrize("name", ["Publish", "Properties", "Frame"])
    def test_a_subclass_may_look_at_what_is_set_and_deleted(self, impl: Implementation, name: str) -> None:
        codec = impl.dialect("rabbitmq-0-9-1")
        classes = {"Publish": codec.Basic.Publish, "Properties": codec.BasicProperties}
        base = classes.get(name) or impl.records.Frame
        seen: list[str] = []

        class Watched(base):  # type: ignore[misc, valid-type]
            def __setattr__(self, attribute: str, value: object) -> None:
                seen.append(attribute)
                super().__setattr__(attribute, value)

            def __delattr__(self, attribute: str) -> None:
                seen.append(f"no {attribute}")
                super().__delattr__(attribute)

        watched = Watched(1, 0, b"") if name == "Frame" else Watched()
        field = base.__match_args__[0]
        seen.clear()
        setattr(watched, field, 7)
        watched.added = 8
        assert (getattr(watched, field), watched.added) == (7, 8)
        del watched.added
        assert not hasattr(watched, "added")
        assert seen == [field, "added", "no added"]
        with pytest.raises(AttributeError, match="added"):
            del watched.added

    def test_a_subclass_may_delete_slots_of_its_own(self, impl: Implementation) -> None:
        class Marked(impl.records.Frame):  # type: ignore[misc, name-defined]
            __slots__ = ("mark",)

        marked = Marked(1, 0, b"")
        marked.mark = 1
        del marked.mark
        assert not hasattr(marked, "mark")

    def test_fields_belong_to_their_class(self, impl: Implementation) -> None:
        codec = impl.dialect("rabbitmq-0-9-1")
        with pytest.raises(TypeError):
            vars(codec.Basic.Publish)["routing_key"].__get__(codec.Basic.Ack())
        with pytest.raises(AttributeError):
            codec.Basic.Ack().routing_key  # noqa: B018

    @pytest.mark.parametrize("name", ["Frame", "ContentHeader", "Message", "OpaquePayload", "ProtocolHeader"])
    def test_shared_classes(self, both: tuple[Implementation, Implementation], name: str) -> None:
        one, two = (getattr(impl.records, name) for impl in both)
        assert one.__match_args__ == two.__match_args__
        members = [{member for member in dir(cls) if not member.startswith("_")} for cls in (one, two)]
        assert members[0] == members[1]

    @pytest.mark.parametrize("name", ["FrameDecoder", "MessageDecoder", "Encoder"])
    def test_decoders_and_encoders(
        self, both: tuple[Implementation, Implementation], dialect: str, name: str
    ) -> None:
        one, two = (getattr(impl.dialect(dialect), name) for impl in both)
        members = [{member for member in dir(cls) if not member.startswith("_")} for cls in (one, two)]
        assert members[0] == members[1]
        assert one.dialect.name == two.dialect.name == dialect

    def test_options_are_by_keyword_only(self, codec: ModuleType) -> None:
        for cls in (codec.FrameDecoder, codec.MessageDecoder, codec.Encoder):
            with pytest.raises(TypeError):
                cls(4096)

    def test_base_classes_stand_for_no_method(self, impl: Implementation) -> None:
        for name in ("Method", "Properties"):
            with pytest.raises((AttributeError, NotImplementedError, TypeError, AmqpError)):
                repr(getattr(impl.records, name)())
