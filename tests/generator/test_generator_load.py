"""Reading specifications: what is refused and how, extending, overlays, explaining, writing and checking."""

from __future__ import annotations

import re
from pathlib import Path

import gen_codec
import pytest
from codecgen import output
from codecgen.elements import SpecError
from codecgen.explain import bit_places, explain
from codecgen.load import load_dialect, load_project
from codecgen.model import Dialect, Field
from codecgen.peers import Peer
from codecgen.wire_types import WIRE_TYPES

ROOT = Path(__file__).resolve().parents[2]
METHOD = '<method name="call" index="1">{}</method>'
CLASS = '<class name="demo" index="1">{}</class>'


def write_spec(path: Path, body: str, attributes: str = 'major="0" minor="9" revision="1"') -> Path:
    path.write_text(f"<amqp {attributes}>\n{body}\n</amqp>\n", encoding="utf-8")
    return path


def in_class(body: str) -> str:
    return CLASS.format(body)


def in_method(body: str) -> str:
    return CLASS.format(METHOD.format(body))


BAD = [
    ('<klass name="x"/>', '<klass name="x">: unknown element inside <amqp>'),
    ('<constant name="x" value="1" colour="red"/>', "unknown attribute 'colour'"),
    ('<constant name="x"/>', "<constant name=\"x\">: attribute 'value' is missing"),
    ('<constant value="1"/>', "<constant>: attribute 'name' is missing"),
    ('<constant name="x" value="many"/>', "value 'many' is not a number of 0 to"),
    ('<constant name="x" value="-1"/>', "value '-1' is not a number of 0 to"),
    ('<constant name="x" value="70000" class="soft-error"/>', "value '70000' is not a number of 0 to 65535"),
    ('<constant name="x" value="1" class="fatal"/>', "class 'fatal' is not one of soft-error, hard-error"),
    ('<constant name="x" value="1"/><constant name="X" value="2"/>', "name 'x' is already that of 'x' at"),
    (
        '<constant name="x" value="1" class="hard-error"/><constant name="y" value="1" class="hard-error"/>',
        "value 1 is already that of the error 'x'",
    ),
    ('<constant name="9x" value="1"/>', "'9x' does not begin with a letter"),
    ('<domain name="x" type="y"/>', "unknown type 'y'"),
    ('<domain name="x" type="x"/>', "domain 'x' is defined by itself"),
    ('<domain name="x" type="y"/><domain name="y" type="x"/>', "is defined by itself"),
    ('<domain name="bit" type="long"/>', "'bit' is a type of the wire format"),
    ('<domain name="x" type="bit"/><domain name="x" type="bit"/>', "name 'x' is already that of"),
    ('<domain name="x" type="bit"><assert check="odd"/></domain>', "<assert>: check 'odd' is not one of"),
    ('<domain name="x" type="long"><assert check="le" method="a" field="b"/></domain>', "refers to a method"),
    (in_class("some words<chassis name='server' implement='WILL'/>"), "implement 'WILL' is not one of"),
    (in_class("<chassis name='server' implement='MAY'>no</chassis>"), "text does not belong here: 'no'"),
    (in_class("<chassis name='proxy' implement='MAY'/>"), "a chassis is 'server' or 'client'"),
    (in_class("<chassis name='server' implement='MAY'/>" * 2), "name 'server' is already that of"),
    (in_class('<method name="call"/>'), "attribute 'index' is missing"),
    (in_class('<method name="call" index="65536"/>'), "index '65536' is not a number of 0 to 65535"),
    (in_class('<method name="call" index="x"/>'), "index 'x' is not a number"),
    (in_class('<method name="call" index="1" content="yes"/>'), "content 'yes' is neither '1' nor '0'"),
    (in_class('<method name="a" index="1"/><method name="b" index="1"/>'), "index 1 is already that of 'a'"),
    (in_class('<method name="a" index="1"/><method name="A" index="2"/>'), "name 'a' is already that of 'a'"),
    (
        in_class('<method name="get-ok" index="1"/><method name="get_ok" index="2"/>'),
        "gives the Python name GetOk, as 'get-ok' at",
    ),
    (in_class("") + '<class name="other" index="1"/>', "index 1 is already that of 'demo'"),
    (in_class("") + '<class name="demo" index="2"/>', "name 'demo' is already that of 'demo'"),
    (in_class('<field name="body" type="content"/>'), "a content property cannot be of type 'content'"),
    (in_method('<response name="answer"/>'), "class 'demo' has no method of this name"),
    (in_method('<field name="x" domain="y"/>'), "unknown domain 'y'"),
    (in_method('<field name="x" type="int"/>'), "unknown type 'int'"),
    (in_method('<field name="x"/>'), "a field names either a domain or a type"),
    (in_method('<field name="x" type="bit" domain="bit"/>'), "a field names either a domain or a type"),
    (in_method('<field name="x" type="bit" reserved="true"/>'), "reserved 'true' is neither '1' nor '0'"),
    (in_method('<field name="x" type="bit"/>' * 2), "name 'x' is already that of 'x'"),
    (
        in_method('<field name="no-ack" type="bit"/><field name="no_ack" type="bit"/>'),
        '<field name="no_ack">: gives the Python name no_ack',
    ),
    (in_method('<field name="__init__" type="bit"/>'), "does not begin with a letter"),
    (
        in_method('<field name="x" type="short"><assert check="length"/></field>'),
        "check 'length' goes with value",
    ),
    (
        in_method('<field name="x" type="shortstr"><assert check="regexp" value="["/></field>'),
        "is not a regular expression",
    ),
    (
        in_method('<field name="x" type="octet"><assert check="enum"/></field>'),
        "check 'enum' goes with <value> elements or a value attribute",
    ),
    (in_method('<field name="x" type="octet"><assert check="ne" value="a"/></field>'), "is not a number"),
]


@pytest.mark.parametrize(("body", "message"), BAD)
def test_a_bad_specification_is_refused_with_file_line_and_element(
    tmp_path: Path, body: str, message: str
) -> None:
    path = write_spec(tmp_path / "bad.xml", body)
    with pytest.raises(SpecError) as caught:
        load_dialect(path)
    assert str(caught.value).startswith(f"{path.as_posix()}:2: <")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not XML", ":1: not well-formed XML: syntax error"),
        ("<amqp>\n<class>\n</amqp>", ":3: not well-formed XML: mismatched tag"),
        ("<protocol/>", ":1: <protocol>: the root element of a specification is <amqp>"),
        ("<amqp/>", ":1: <amqp>: attribute 'major' is missing"),
        ('<amqp major="256" minor="0"/>', "major '256' is not a number of 0 to 255"),
        ('<amqp major="0" minor="9" table-profile="odd"/>', "table-profile 'odd' is not one of"),
        ('<amqp major="0" minor="9" module="Not One"/>', "module 'Not One' is not the name"),
        ('<amqp major="0" minor="9" accepted-headers="1.2.3"/>', "'1.2.3' is not four numbers"),
        ('<amqp major="0" minor="9" accepted-headers="1.1.0.9"/>', "'1.1.0.9' is accepted already"),
        ('<amqp major="0" minor="9" extends="none.xml"/>', "extends 'none.xml', which does not exist"),
        ('<amqp major="0" minor="9" extends="bad.xml"/>', "extends 'bad.xml', which extends this file"),
        ('<!DOCTYPE amqp [<!ENTITY a "b">]>\n<amqp major="0" minor="9"/>', "entities are not supported"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.xml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        load_dialect(path)
    assert message in str(caught.value)


INTEGERS = {"octet", "short", "long", "longlong"}
STRINGS = {"shortstr", "longstr"}
CHECKS = [
    ('<assert check="length" value="1"/>', STRINGS),
    ('<assert check="regexp" value="a"/>', STRINGS),
    ('<assert check="ne" value="0"/>', INTEGERS),
    ('<assert check="le" method="call" field="x"/>', INTEGERS),
    ('<assert check="notnull"/>', set(WIRE_TYPES)),
    ('<assert check="null"/>', set(WIRE_TYPES)),
    ('<assert check="syntax" rule="path"/>', set(WIRE_TYPES)),
    ('<assert check="enum" value="a b"/>', set(WIRE_TYPES)),
]


@pytest.mark.parametrize("type_", WIRE_TYPES)
@pytest.mark.parametrize(("check", "types"), CHECKS)
def test_an_assert_is_taken_only_on_a_type_it_can_be_made_on(
    tmp_path: Path, check: str, types: set[str], type_: str
) -> None:
    body = in_method(f'<field name="x" type="{type_}">\n{check}</field>')
    path = write_spec(tmp_path / "x.xml", body)
    if type_ in types:
        assert len(load_dialect(path).methods[0].fields[0].asserts) == 1
        return
    with pytest.raises(SpecError) as caught:
        load_dialect(path)
    assert str(caught.value).startswith(f"{path.as_posix()}:3: <assert>: check ")
    assert f"cannot be made on a {type_}, only on " in str(caught.value)


def test_an_assert_of_a_domain_is_held_against_the_type_it_comes_down_to(tmp_path: Path) -> None:
    inner = '<domain name="inner" type="long"/>'
    outer = '<domain name="outer" type="inner">{}</domain>'
    path = write_spec(tmp_path / "x.xml", inner + outer.format('<assert check="ne" value="0"/>'))
    assert len(load_dialect(path).domains[1].asserts) == 1
    write_spec(path, inner + outer.format('\n<assert check="length" value="9"/>'))
    with pytest.raises(SpecError, match=r"x\.xml:3: <assert>: check 'length' cannot be made on a long"):
        load_dialect(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("frame-method", 1),
        ("frame-header", 2),
        ("frame-body", 3),
        ("frame-heartbeat", 8),
        ("frame-end", 206),
    ],
)
def test_a_constant_that_is_built_in_has_only_its_one_value(tmp_path: Path, name: str, value: int) -> None:
    text = f'<constant name="{name}" value="{{}}"/>'
    path = write_spec(tmp_path / "x.xml", text.format(value))
    assert load_dialect(path).constants[0].value == value
    write_spec(path, "\n" + text.format(value + 1))
    said = rf'x\.xml:3: <constant name="{name}">: value {value + 1} is not the {value} that'
    with pytest.raises(SpecError, match=said):
        load_dialect(path)


@pytest.mark.parametrize("name", ["frame-oob-method", "frame-oob-header", "frame-oob-body", "frame-trace"])
def test_an_opaque_frame_type_is_at_most_31(tmp_path: Path, name: str) -> None:
    text = f'<constant name="{name}" value="{{}}"/>'
    path = write_spec(tmp_path / "x.xml", text.format(31))
    assert load_dialect(path).constants[0].value == 31
    write_spec(path, "\n" + text.format(32))
    with pytest.raises(SpecError, match=rf'x\.xml:3: <constant name="{name}">: value 32 is not a frame type'):
        load_dialect(path)


def test_names_that_the_module_has_taken_get_an_underscore(tmp_path: Path) -> None:
    body = """<constant name="dialect" value="1"/><constant name="methods" value="2"/>
      <constant name="properties" value="3"/>
      <class name="encoder" index="1"><method name="encoder" index="1" content="1"/></class>
      <class name="frame" index="2"><method name="decoder" index="1"/></class>
      <class name="message-decoder" index="3"/>
      <class name="method" index="4"><method name="spec" index="1"/></class>"""
    dialect = load_dialect(write_spec(tmp_path / "x.xml", body))
    assert [each.python_name for each in dialect.constants] == ["DIALECT_", "METHODS_", "PROPERTIES_"]
    assert [each.python_name for each in dialect.classes] == [
        "Encoder_",
        "Frame",
        "MessageDecoder_",
        "Method",
    ]
    assert [each.python_name for each in dialect.methods] == [
        "EncoderEncoder",
        "FrameDecoder_",
        "MethodSpec_",
    ]
    assert [each.short_name for each in dialect.methods] == ["Encoder", "Decoder", "Spec"]
    assert dialect.classes[0].properties_name == "EncoderProperties"


def test_a_class_called_as_a_keyword_has_the_underscore_only_where_it_is_one(tmp_path: Path) -> None:
    body = '<class name="none" index="1"><method name="true" index="1" content="1"/></class>'
    dialect = load_dialect(write_spec(tmp_path / "x.xml", body))
    (cls,) = dialect.classes
    assert (cls.python_name, cls.properties_name) == ("None_", "NoneProperties")
    assert (cls.methods[0].python_name, cls.methods[0].short_name) == ("NoneTrue", "True_")


CLASHES = [
    (
        '<class name="basic" index="1"><field name="x" type="bit"/>\n'
        '<method name="properties" index="1"/></class>',
        "<method name=\"properties\">: gives the Python name BasicProperties, as 'basic' at ",
    ),
    (
        '<class name="basic-get" index="1"/>\n<class name="basic" index="2">\n'
        '<method name="get" index="1"/></class>',
        "<method name=\"get\">: gives the Python name BasicGet, as 'basic-get' at ",
    ),
    ('<constant name="x" value="1"/>\n<class name="x" index="1"/>', "gives the Python name X, as 'x' at "),
    (
        '<constant name="x-1" value="1" class="soft-error"/>\n'
        '<constant name="x1" value="2" class="soft-error"/>',
        "gives the Python name AmqpX1, as 'x-1' at ",
    ),
]


@pytest.mark.parametrize(("body", "message"), CLASHES)
def test_two_things_of_one_name_in_a_module_are_refused_with_both_lines(
    tmp_path: Path, body: str, message: str
) -> None:
    path = write_spec(tmp_path / "x.xml", body)
    with pytest.raises(SpecError) as caught:
        load_dialect(path)
    assert str(caught.value).startswith(f"{path.as_posix()}:{2 + body.count(chr(10))}: <")
    assert f"{message}{path.as_posix()}:2 does" in str(caught.value)


def test_a_method_called_properties_is_taken_where_the_class_has_no_content(tmp_path: Path) -> None:
    body = in_class('<method name="properties" index="1"/>')
    assert load_dialect(write_spec(tmp_path / "x.xml", body)).methods[0].python_name == "DemoProperties"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        load_dialect(tmp_path / "none.xml")


def test_the_published_style_with_prose_and_blanks_loads(tmp_path: Path) -> None:
    body = """
      A Protocol
      <constant name="frame error" value="501" class="hard error">bad frame<doc>More.</doc></constant>
      <domain name="Queue Name" type="shortstr">a queue<rule implement="MUST">x <b>y</b></rule></domain>
      <class name="Work" index="7" handler="channel">
        what it is for
        <doc name="grammar">work = C:CALL</doc>
        <field name="content type" type="shortstr">MIME type</field>
        <method name="call" index="10" content="1">
          <field name="queue" domain="queue name" on-failure="x"><doc>d</doc></field>
          <field name="op" type="octet">
            <assert check="enum"><value name="min"/><value name="max"/></assert>
          </field>
          <field name="kind" type="octet"><assert check="enum" value="a b"/></field>
        </method>
      </class>"""
    path = write_spec(tmp_path / "my-broker.xml", body, 'major="8" minor="0" comment="words"')
    dialect = load_dialect(path)
    (cls,) = dialect.classes
    (method,) = cls.methods
    assert (dialect.name, dialect.module, dialect.table_profile) == ("my-broker", "my_broker", "rabbitmq")
    assert dialect.protocol_header == b"AMQP\x01\x01\x08\x00"
    assert (dialect.constants[0].name, dialect.constants[0].kind) == ("frame-error", "hard")
    assert (cls.name, cls.label, cls.properties[0].attribute) == ("work", "what it is for", "content_type")
    assert (method.full_name, method.index, method.content) == ("work.call", 0x0007000A, True)
    assert (method.fields[0].domain, method.fields[0].type) == ("queue-name", "shortstr")
    assert [field.asserts[0].values for field in method.fields[1:]] == [("min", "max"), ("a", "b")]


def test_a_domain_made_of_a_domain_has_the_asserts_of_both(tmp_path: Path) -> None:
    body = """<domain name="outer" type="inner"><assert check="notnull"/></domain>
      <domain name="inner" type="shortstr"><assert check="length" value="9"/></domain>"""
    outer = load_dialect(write_spec(tmp_path / "x.xml", body)).domains[0]
    assert outer.type == "shortstr"
    assert [condition.check for condition in outer.asserts] == ["length", "notnull"]


BASE = in_class(
    '<chassis name="server" implement="MUST"/><field name="size" type="long"/>'
    '<method name="ask" index="1"><field name="x" type="bit"/></method><method name="tell" index="2"/>'
)


def extended(tmp_path: Path, body: str) -> Dialect:
    write_spec(tmp_path / "base.xml", BASE, 'major="0" minor="9" accepted-headers="1.1.9.1" label="base"')
    return load_dialect(write_spec(tmp_path / "more.xml", body, 'extends="base.xml"'))


def test_an_extension_replaces_whole_methods_and_adds_new_ones_at_the_end(tmp_path: Path) -> None:
    dialect = extended(
        tmp_path,
        '<class name="demo" label="new"><chassis name="server" implement="MAY"/>'
        '<method name="shout" index="3"/><method name="ask" index="9"/></class>'
        '<class name="late" index="2"/>',
    )
    demo, late = dialect.classes
    assert [(method.name, method.method_id) for method in demo.methods] == [
        ("ask", 9),
        ("tell", 2),
        ("shout", 3),
    ]
    assert demo.methods[0].fields == ()
    assert (demo.server, demo.label, demo.class_id, len(demo.properties)) == ("MAY", "new", 1, 1)
    assert late.name == "late"
    assert (dialect.major, dialect.minor, dialect.label) == (0, 9, "")
    assert dialect.accepted_headers == (b"AMQP\x01\x01\x00\x09",)
    assert [Path(source.path).name for source in dialect.sources] == ["base.xml", "more.xml"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('<class name="demo" index="4"/>', "index 4 is not the 1 it has in"),
        ('<class name="demo"/>' * 2, "name 'demo' is already that of 'demo'"),
        ('<class name="demo">' + '<method name="ask" index="1"/>' * 2 + "</class>", "already that of 'ask'"),
        ('<class name="demo"><method name="new" index="2"/></class>', "index 2 is already that of 'tell'"),
    ],
)
def test_an_extension_that_does_not_fit_is_refused(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        extended(tmp_path, body)
    assert message in str(caught.value)
    assert "more.xml:2" in str(caught.value)


def entry(element: str, attribute: str, was: str, now: str, reason: str = "because") -> str:
    pairs = {"element": element, "attribute": attribute, "was": was, "now": now, "reason": reason}
    return "[[correction]]\n" + "".join(f'{key} = "{value}"\n' for key, value in pairs.items())


def overlaid(tmp_path: Path, toml: str) -> Dialect:
    path = write_spec(tmp_path / "x.xml", BASE + '<constant name="c" value="1"/>')
    (tmp_path / "overlays").mkdir()
    (tmp_path / "overlays" / "x.toml").write_text(toml, encoding="utf-8")
    return load_dialect(path)


def test_an_overlay_corrects_every_kind_of_element(tmp_path: Path) -> None:
    dialect = overlaid(
        tmp_path,
        entry("amqp", "accepted-headers", "", "1.1.0.9")
        + entry("constant:c", "class", "", "soft-error")
        + entry("demo", "server", "MUST", "")
        + entry("demo", "client", "", "SHOULD")
        + entry("demo.properties.size", "type", "long", "short")
        + entry("demo.ask", "responses", "", "tell")
        + entry("demo.ask.x", "reserved", "", "1"),
    )
    (demo,) = dialect.classes
    assert len(dialect.accepted_headers) == 2
    assert dialect.constants[0].kind == "soft"
    assert (demo.server, demo.client, demo.properties[0].type) == (None, "SHOULD", "short")
    assert demo.methods[0].responses == ("tell",)
    assert demo.methods[0].fields[0].reserved
    assert len(dialect.corrections) == 7


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        (entry("demo.ask", "responses", "yell", "tell"), "was to be 'yell', but"),
        (entry("demo.none", "responses", "", "tell"), "the specification has no such element"),
        (entry("demo.ask.x.y", "type", "", "bit"), "the specification has no such element"),
        (entry("demo.ask", "content", "1", "1"), "changes nothing"),
        (entry("demo.ask", "content", "", "1") * 2, "corrected twice"),
        (entry("demo.ask", "content", "", "1", reason=" "), "the reason is missing"),
        (entry("demo.ask", "name", "ask", "demand"), "a correction cannot change this attribute"),
        (entry("demo.ask", "colour", "", "red"), "a correction cannot change this attribute"),
        ('[[correction]]\nelement = "demo"\n', "has the keys"),
        (entry("demo", "label", "", "1").replace('"because"', "1"), "every value is a string"),
        ("surplus = 1", "unknown key 'surplus'"),
        ("= 1", "not TOML"),
        (entry("demo.ask", "responses", "", "nobody"), "class 'demo' has no method of this name"),
    ],
)
def test_an_overlay_that_does_not_fit_is_refused(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        overlaid(tmp_path, toml)
    assert message in str(caught.value)


def test_an_overlay_of_the_base_does_not_reach_the_extension(tmp_path: Path) -> None:
    (tmp_path / "overlays").mkdir()
    (tmp_path / "overlays" / "base.toml").write_text(
        entry("demo.ask", "responses", "", "tell"), encoding="utf-8"
    )
    dialect = extended(tmp_path, "")
    assert dialect.classes[0].methods[0].responses == ()
    assert dialect.corrections == ()


def bits(*types: str) -> list[Field]:
    return [Field(f"f{n}", f"f{n}", type_, type_, False, "", ()) for n, type_ in enumerate(types)]


def test_neighbouring_bits_share_an_octet_from_the_lowest_up() -> None:
    assert bit_places(bits("bit", "bit", "long", "bit")) == [(1, 0), (1, 1), None, (2, 0)]
    assert bit_places(bits(*["bit"] * 9))[-2:] == [(1, 7), (2, 0)]


def test_explaining_a_method_shows_ids_layout_asserts_and_sides_for_every_dialect() -> None:
    text = explain(load_project(ROOT), "basic.publish")
    assert text.count("BasicPublish") == 5
    assert "index 0x003C0028" in text
    assert "who accepts: server MUST" in text
    assert "synchronous: no; content: yes" in text
    assert "bit 1 (0x02) of bit octet 1  immediate" in text
    assert "reserved: was the access ticket" in text
    assert "[length 127] [regexp ^[a-zA-Z0-9-_.:]*$]" in text


def test_explaining_shows_corrections_and_python_names() -> None:
    dialects = load_project(ROOT)
    assert explain(dialects, "basic.recover").count("corrected: basic.recover responses") == 2
    assert "global (Python: global_)" in explain(dialects, "basic.qos")
    assert "[le tune.channel-max]" in explain(dialects, "connection.tune-ok")
    assert "no arguments" in explain(dialects, "tx.select")


def test_explaining_a_class_shows_its_properties_with_their_flags() -> None:
    text = explain(load_project(ROOT), "basic")
    assert "class 60 (0x003C), Python: Basic" in text
    assert "bit 15 (0x8000)  1 + n octets  content-type" in text
    assert "bit 2 (0x0004)" in text


def test_every_method_of_every_dialect_can_be_explained() -> None:
    dialects = load_project(ROOT)
    for name in {method.full_name for dialect in dialects for method in dialect.methods}:
        assert explain(dialects, name)


class Stub:
    """Stands in for the emitters: one file for every dialect."""

    def render_project(self, dialects: list[Dialect], peers: list[Peer]) -> dict[str, str]:
        return {f"src/amqpcodec/_generated/{each.module}.py": self._text(each) for each in dialects}

    def render_package(self, dialect: Dialect, package_name: str) -> dict[str, str]:
        return {f"{package_name}/__init__.py": self._text(dialect)}

    def _text(self, dialect: Dialect) -> str:
        return f"{output.MARKER} from {dialect.name}\nMETHODS = {len(dialect.methods)}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "spec").symlink_to(ROOT / "spec")
    return tmp_path


def run(repo: Path, *argv: str) -> int:
    return gen_codec.main(argv, root=repo, emitter=Stub())


def test_writing_then_checking_finds_nothing(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(repo) == 0
    assert capsys.readouterr().out.count("wrote src/amqpcodec/_generated/") == 5
    assert run(repo, "--check") == 0
    assert run(repo) == 0
    assert capsys.readouterr().out == ""


def test_checking_shows_the_difference_and_the_command_and_writes_nothing(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(repo)
    stale = repo / "src/amqpcodec/_generated/rabbitmq.py"
    fresh = stale.read_text(encoding="utf-8")
    [count] = re.findall(r"METHODS = (\d+)\n", fresh)
    stale.write_text(fresh.replace(f"METHODS = {count}", "METHODS = 0"), encoding="utf-8")
    (repo / "src/amqpcodec/_generated/amqp08.py").unlink()
    capsys.readouterr()
    assert run(repo, "--check") == 1
    shown = capsys.readouterr()
    assert f"-METHODS = 0\n+METHODS = {count}\n" in shown.out
    assert "src/amqpcodec/_generated/amqp08.py: missing" in shown.out
    assert "run: python tools/gen_codec.py" in shown.err
    assert "METHODS = 0\n" in stale.read_text(encoding="utf-8")


def test_a_marked_file_nobody_writes_fails_the_check_and_is_deleted_by_writing(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(repo)
    stray, own = repo / "src/amqpcodec/old.pxd", repo / "src/amqpcodec/own.py"
    stray.write_text(f"{output.MARKER}\n", encoding="utf-8")
    own.write_text("# by hand\n", encoding="utf-8")
    assert run(repo, "--check") == 1
    assert "src/amqpcodec/old.pxd: says it is generated" in capsys.readouterr().out
    assert run(repo) == 0
    assert not stray.exists()
    assert own.exists()


def test_a_foreign_specification_becomes_a_package_and_nothing_is_deleted(repo: Path, tmp_path: Path) -> None:
    run(repo)
    spec = write_spec(tmp_path / "mine.xml", BASE)
    options = ("--spec", str(spec), "--out", str(repo), "--package", "mine")
    assert run(repo, *options) == 0
    assert (repo / "mine/__init__.py").read_text(
        encoding="utf-8"
    ) == f"{output.MARKER} from mine\nMETHODS = 2\n"
    assert run(repo, *options, "--check") == 0
    assert run(repo, "--check") == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--explain", "basic.nothing"], "no dialect has a method 'basic.nothing'"),
        (["--explain", "nothing"], "no dialect has a class 'nothing'"),
        (["--out", "x"], "--out and --package go with --spec"),
        (["--spec", "x.xml"], "--spec goes with --out and --package"),
        (["--spec", "x.xml", "--explain", "basic"], "x.xml: cannot be read"),
    ],
)
def test_wrong_requests_are_reported_on_standard_error(
    repo: Path, capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert run(repo, *argv) == 2
    assert message in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_reported_in_one_line_and_is_not_a_stale_one(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "src").write_text("a file where a folder has to be", encoding="utf-8")
    assert run(repo) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"{repo / 'src'}")
    assert shown.err.count("\n") == 1


def test_a_file_that_cannot_be_read_is_reported_in_one_line_and_is_not_a_stale_one(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bytes:
        if path.suffix == ".py":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    run(repo)
    capsys.readouterr()
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert run(repo, "--check") == 2
    shown = capsys.readouterr()
    path = repo / "src/amqpcodec/_generated/amqp08.py"
    assert (shown.out, shown.err) == ("", f"{path}: Permission denied\n")
