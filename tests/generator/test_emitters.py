"""What the emitters write, line by line, for small models."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import pytest
from codecgen import naming
from codecgen.code import Code, string
from codecgen.elements import SpecError
from codecgen.emit import render_package
from codecgen.emit_content_writers import render_content_writers
from codecgen.emit_contents import render_contents
from codecgen.emit_facts import render_facts
from codecgen.emit_module import render_module
from codecgen.emit_records import emit_method, emit_properties
from codecgen.emit_reply_codes import render_codes, render_reply_codes
from codecgen.emit_types import render_types
from codecgen.layout import BitRun, steps
from codecgen.model import Assert, Constant, Field, Method
from codecgen.wire_types import WIRE_TYPES
from demo_dialect import bits, class_of, dialect, field, function, method

from amqpcodec import __version__

ROOT = Path(__file__).resolve().parent.parent.parent


def method_text(*fields: Field, content: bool = False, deprecated: bool = False) -> str:
    code = Code()
    emit_method(code, dialect(), method(*fields, content=content, deprecated=deprecated))
    return code.text()


def types_text(*fields: Field, content: bool = False) -> str:
    """The C types of a dialect whose one method has these fields."""
    return render_types(dialect(class_of((), method(*fields, content=content))))


def facts_text(the_method: Method) -> str:
    """The facts of a dialect of one method, from its first line on."""
    text = render_facts(dialect(class_of((), the_method)))
    return text[text.index("DemoCall = ") :].split("DemoProperties")[0]


def properties_text(*fields: Field) -> str:
    code = Code()
    emit_properties(code, class_of(fields))
    return code.text()


@pytest.mark.parametrize(("count", "runs"), [(1, [1]), (8, [8]), (9, [8, 1]), (17, [8, 8, 1])])
def test_a_run_of_bits_takes_an_octet_for_every_eight(count: int, runs: list[int]) -> None:
    read = function(method_text(*bits(count)), "_read")
    expected = []
    names = iter(range(count))
    for run in runs:
        positions = list(islice(names, run))
        expected.append(f'bits = reader.bits("b{positions[0]}")')
        expected += [
            f"self.b{each} = (bits & {1 << position}) != 0" for position, each in enumerate(positions)
        ]
    assert read == expected


@pytest.mark.parametrize("count", [1, 8, 9, 17])
def test_a_run_of_bits_is_written_as_it_is_read(count: int) -> None:
    text = "\n".join(function(method_text(*bits(count)), "_write"))
    assert text.count("writer.bits(") == -(-count // 8)
    for position in range(count):
        shift = f" << {position % 8}" if position % 8 else ""
        assert f'writer.bit(self.b{position}, "b{position}"){shift}' in text
    assert f"<< {count % 8 or 8}" not in text.rpartition("writer.bits(")[2]


def test_what_lies_between_bits_ends_their_octet() -> None:
    text = method_text(*bits(2), field("n", "octet"), *bits(1, 2))
    assert function(text, "_read") == [
        'bits = reader.bits("b0")',
        "self.b0 = (bits & 1) != 0",
        "self.b1 = (bits & 2) != 0",
        'self.n = reader.octet("n")',
        'bits = reader.bits("b2")',
        "self.b2 = (bits & 1) != 0",
    ]
    assert function(text, "_write") == [
        "writer.ids(9, 7)",
        'writer.bits(writer.bit(self.b0, "b0") | writer.bit(self.b1, "b1") << 1)',
        'writer.octet(self.n, "n")',
        'writer.bits(writer.bit(self.b2, "b2"))',
    ]


@pytest.mark.parametrize("count", [1, 8, 9, 17])
def test_bits_on_both_sides_of_another_field_never_share(count: int) -> None:
    fields = (*bits(count), field("n"), *bits(count, 100))
    runs = [step for step in steps(fields) if isinstance(step, BitRun)]
    assert [len(run.fields) for run in runs] == 2 * ([8] * (count // 8) + [count % 8] * (count % 8 > 0))
    assert [each.name for run in runs for each in run.fields] == [
        each.name for each in fields if each.name != "n"
    ]


@pytest.mark.parametrize("type_", sorted(WIRE_TYPES.keys() - {"bit"}))
def test_each_type_is_read_and_written_by_the_call_of_its_name(type_: str) -> None:
    text = method_text(field("some-name", type_))
    assert function(text, "_read") == [f'self.some_name = reader.{type_}("some-name")']
    assert function(text, "_write") == ["writer.ids(9, 7)", f'writer.{type_}(self.some_name, "some-name")']


DEFAULTS = [
    ("bit", "n: bool = False"),
    ("octet", "n: int = 0"),
    ("longlong", "n: int = 0"),
    ("shortstr", 'n: str = ""'),
    ("longstr", 'n: bytes = b""'),
    ("timestamp", "n: _datetime | int = _EPOCH"),
    ("table", "n: _Mapping[str, _Any] | None = None"),
    ("content", "n: _InlineContent | _ReferenceContent = _NO_CONTENT"),
]


@pytest.mark.parametrize(("type_", "parameter"), DEFAULTS)
def test_every_argument_has_the_empty_value_of_its_type_as_default(type_: str, parameter: str) -> None:
    text = method_text(field("n", type_))
    assert f"    def __init__(self, {parameter}) -> None:\n" in text


def test_a_table_that_is_not_given_is_a_new_one_each_time() -> None:
    body = function(method_text(field("n", "table")), "__init__")
    assert body == ["self.n: _Mapping[str, _Any] = {} if n is None else n"]


def test_reserved_arguments_are_by_keyword_only_and_not_matched_by_position() -> None:
    fields = (field("r1", reserved=True), field("n"), field("r2", reserved=True))
    text = method_text(*fields)
    assert "    def __init__(self, n: int = 0, *, r1: int = 0, r2: int = 0) -> None:\n" in text
    assert '    __match_args__ = ("n",)\n' in text
    assert '    __slots__ = ("r1", "n", "r2")\n' in text
    assert facts_text(method(*fields)).count("reserved=True") == 2
    assert function(method_text(*fields), "_read")[0] == 'self.r1 = reader.short("r1")'


def test_only_reserved_arguments_leave_nothing_by_position() -> None:
    text = method_text(field("r1", reserved=True))
    assert "    def __init__(self, *, r1: int = 0) -> None:\n" in text
    assert "    __match_args__ = ()\n" in text


def test_a_method_without_arguments_is_complete() -> None:
    text = method_text()
    assert "    __slots__ = ()\n    __match_args__ = ()\n" in text
    assert function(text, "__init__") == ["pass"]
    assert function(text, "_read") == ["pass"]
    assert function(text, "_write") == ["writer.ids(9, 7)"]
    assert "    spec = _facts.DemoCall\n" in text
    assert facts_text(method()) == 'DemoCall = MethodSpec("demo.call", 9, 7, label="a call")\n'
    assert "_has_content" not in text


def test_a_method_with_content_says_so() -> None:
    text = method_text(content=True, deprecated=True)
    assert function(text, "_has_content") == ["return True"]
    assert function(text, "_class_id") == ["return 9"]
    facts = facts_text(method(content=True, deprecated=True))
    assert 'MethodSpec("demo.call", 9, 7, content=True, deprecated=True, label="a call")\n' in facts
    assert "Deprecated; content follows." in text


def test_asserts_become_part_of_the_facts() -> None:
    checks = (
        Assert("notnull"),
        Assert("length", value="127"),
        Assert("le", method="tune", field="channel-max"),
        Assert("enum", values=("a", "b")),
    )
    expected = (
        'asserts=(Assert("notnull"), Assert("length", "127"), '
        'Assert("le", reference="tune.channel-max"), Assert("enum", "a, b"),)'
    )
    assert expected in facts_text(method(field("n", asserts=checks)))


def test_labels_with_quotes_and_backslashes_stay_what_they_are() -> None:
    for text in ('say "so"', "it's", "a\\b", "both \" and '", "zażółć"):
        assert eval(string(text)) == text
        assert string(text).startswith('"')


@pytest.mark.parametrize(("count", "words"), [(0, 1), (1, 1), (14, 1), (15, 1), (16, 2), (30, 2), (31, 3)])
def test_properties_take_a_word_of_flags_for_every_fifteen(count: int, words: int) -> None:
    text = properties_text(*(field(f"p{position}") for position in range(count)))
    names = ["flags", "flags2", "flags3"][:words]
    read = ["flags = reader.flag_word()"]
    read += [f"{b} = reader.flag_word() if {a} & 1 else 0" for a, b in pairwise(names)]
    defined = sum(0x8000 >> position for position in range(count - 15 * (words - 1)))
    undefined = f"{names[-1]} & {0xFFFE - defined:#06x}"
    read.append(f"reader.further_flags({names[-1]}, {undefined})")
    for position in range(count):
        present = f"{names[position // 15]} & {0x8000 >> position % 15:#06x}"
        read += [f"if {present}:", f'    self.p{position} = reader.short("p{position}")']
    assert function(text, "_read") == read
    locals_of_c = ", ".join(f"{name}=cython.int" for name in names)
    properties = tuple(field(f"p{position}") for position in range(count))
    declared = render_types(dialect(class_of(properties, method(content=True))))
    for routine in ("_read(self, _Reader reader)", "_write(self, _Writer writer)"):
        assert f"    @cython.locals({locals_of_c})\n    cdef int {routine} except -1\n" in declared


def test_sixteen_properties_are_written_with_the_second_word_only_when_needed() -> None:
    write = function(properties_text(*(field(f"p{position}") for position in range(16))), "_write")
    assert write[:4] == [
        "flags = 0",
        "flags2 = 0",
        "if self.p0 is not None:",
        "    flags |= 0x8000",
    ]
    assert write[30:34] == ["if self.p14 is not None:", "    flags |= 0x0002", "if self.p15 is not None:",
                            "    flags2 |= 0x8000"]  # fmt: skip
    assert write[34:41] == [
        "if flags2:",
        "    flags |= 1",
        "writer.word(flags)",
        "if flags & 1:",
        "    writer.word(flags2)",
        "if flags & 0x8000:",
        '    writer.short(self.p0, "p0")',
    ]
    assert write[-2:] == ["if flags2 & 0x8000:", '    writer.short(self.p15, "p15")']


def test_the_third_word_of_flags_brings_the_second_along() -> None:
    write = function(properties_text(*(field(f"p{position}") for position in range(31))), "_write")
    at = write.index("if flags3:")
    assert write[at : at + 9] == [
        "if flags3:",
        "    flags2 |= 1",
        "if flags2:",
        "    flags |= 1",
        "writer.word(flags)",
        "if flags & 1:",
        "    writer.word(flags2)",
        "if flags2 & 1:",
        "    writer.word(flags3)",
    ]


def test_a_bit_property_is_its_flag_and_takes_no_octets() -> None:
    text = properties_text(field("first"), field("on", "bit"))
    assert function(text, "_read") == [
        "flags = reader.flag_word()",
        "reader.further_flags(flags, flags & 0x3ffe)",
        "if flags & 0x8000:",
        '    self.first = reader.short("first")',
        "self.on = (flags & 0x4000) != 0",
    ]
    assert function(text, "_write") == [
        "flags = 0",
        "if self.first is not None:",
        "    flags |= 0x8000",
        'if writer.bit(self.on, "on"):',
        "    flags |= 0x4000",
        "writer.word(flags)",
        "if flags & 0x8000:",
        '    writer.short(self.first, "first")',
    ]
    text = properties_text(field("first"), field("on", "bit"))
    assert "    def __init__(self, first: int | None = None, on: bool = False) -> None:\n" in text
    summary = "Properties of demo content (9); None stands for one that is absent"
    assert f'"""{summary}, False for a bit.\n' in text
    assert f'"""{summary}.\n' in properties_text(field("first"))


def test_properties_without_any_still_have_a_word_of_flags() -> None:
    text = properties_text()
    assert function(text, "_read") == [
        "flags = reader.flag_word()",
        "reader.further_flags(flags, flags & 0xfffe)",
    ]
    assert function(text, "_write") == ["flags = 0", "writer.word(flags)"]
    assert "    spec = _facts.DemoProperties\n" in text


@pytest.mark.parametrize(("type_", "collected"), [("long", False), ("table", True), ("content", True)])
def test_only_what_can_be_part_of_a_cycle_is_tracked_by_the_collector(type_: str, collected: bool) -> None:
    declared = types_text(field("n", type_))
    assert ("@cython.no_gc\ncdef class DemoCall(_DialectMethod):\n" in declared) is not collected
    assert "cdef class DemoCall(_DialectMethod):\n    cdef object n\n" in declared


def test_the_types_declare_every_routine_of_a_class() -> None:
    text = render_types(dialect(class_of((field("p"),), method(content=True))))
    defined = method_text(content=True) + properties_text(field("p"))
    names = re.findall(r"^    def (_[a-z]\w*)\(", defined, re.MULTILINE)
    assert sorted(set(names)) == ["_class_id", "_has_content", "_read", "_write"]
    declared = re.findall(r"^    cdef [a-z]+ (\w+)\(self", text, re.MULTILINE)
    assert sorted(declared) == sorted([*names, "_dialect", "_dialect"])
    assert "cdef class Encoder(_Encoder):\n    pass\n" in text


@pytest.mark.parametrize("position", [0, 1])
def test_the_bits_of_a_method_are_read_by_way_of_a_c_number(position: int) -> None:
    fields = [field("n"), field("m")]
    fields[position] = field("on", "bit")
    assert "    @cython.locals(bits=cython.int)\n    cdef int _read(self" in types_text(*fields)
    assert "cython.locals" not in types_text(field("n"))


def test_reserved_properties_are_given_by_name_only() -> None:
    text = properties_text(field("a"), field("reserved-1", reserved=True), field("b"))
    assert '__match_args__ = ("a", "b")' in text
    arguments = "a: int | None = None, b: int | None = None, *, reserved_1: int | None = None"
    assert arguments in " ".join(text.split()).replace("( ", "(").replace(", )", ")")


def constant(name: str, value: int, kind: str | None = None) -> Constant:
    return Constant(name, value, kind, f"the {name}", name.replace("-", "_").upper())


def test_names_and_pairs_stand_as_many_on_a_line_as_fit_and_none_is_broken() -> None:
    code = Code()
    with code.block("if x:"):
        code.items("taken = {", [f'"name {number}": "value {number}"' for number in range(6)], "}")
    lines = code.text().splitlines()
    assert [lines[0], lines[1], lines[-1]] == ["if x:", "    taken = {", "    }"]
    assert [line.count(": ") for line in lines[2:-1]] == [4, 2]
    assert max(map(len, lines)) <= 110


def test_reply_codes_become_exceptions_that_say_what_they_close() -> None:
    constants = (
        constant("frame-end", 206),
        constant("my-hard", 599, "hard"),
        constant("my-soft", 399, "soft"),
    )
    text = render_reply_codes([dialect(constants=constants)])
    assert "FrameEnd" not in text
    soft, hard = text.index("class AmqpMySoft(ReplyError):"), text.index("class AmqpMyHard(ReplyError):")
    assert soft < hard
    assert '    code = 399\n    name = "my-soft"\n    closes = "channel"\n' in text
    assert '    code = 599\n    name = "my-hard"\n    closes = "connection"\n' in text
    assert "    399: AmqpMySoft,\n    599: AmqpMyHard,\n}\n" in text


def test_reply_codes_are_numbers_of_a_module_that_imports_nothing() -> None:
    constants = (
        constant("frame-end", 206),
        constant("my-hard", 599, "hard"),
        constant("my-soft", 399, "soft"),
    )
    space: dict[str, object] = {}
    exec(
        render_codes([dialect(constants=constants)]).replace("from __future__ import annotations", ""), space
    )
    assert (space["MY_SOFT"], space["MY_HARD"], space["SOFT"]) == (399, 599, {399})
    assert space["REPLY_NAMES"] == {399: "my-soft", 599: "my-hard"}
    assert "FRAME_END" not in space


def test_one_reply_code_with_two_meanings_is_refused() -> None:
    first = dialect(constants=(constant("one", 399, "soft"),))
    for other in (constant("two", 399, "soft"), constant("one", 399, "hard")):
        with pytest.raises(SpecError, match="reply code 399 is one in another dialect"):
            render_reply_codes([first, dialect(constants=(other,))])


def test_every_class_and_table_that_a_module_always_has_is_kept_from_names_of_a_dialect() -> None:
    text = render_module(dialect(), "demo", "demo.facts")
    names = re.search(r"^__all__ = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    assert names is not None
    public = re.findall(r'"(\w+)"', names[1])
    assert {name for name in public if name[0].isupper()} == naming.MODULE_NAMES | set(naming.SHARED_NAMES)
    facts = re.search(r"^from amqpcodec\.spec import (.*)", render_facts(dialect()), re.MULTILINE)
    assert facts is not None
    # An Assert cannot be meant: what has facts is named by two words at least.
    assert set(facts[1].split(", ")) - {"Assert"} == naming.FACTS_NAMES


def test_a_table_beside_an_argument_called_str_does_not_get_its_type_by_that_name() -> None:
    body = function(method_text(field("str", "shortstr"), field("n", "table")), "__init__")
    assert body == ["self.str = str", "self.n = {} if n is None else n"]


def test_the_setup_of_a_package_installs_its_types_and_their_marker() -> None:
    settings = tomllib.loads(render_package(dialect(), "own")["pyproject.toml"])
    assert settings["tool"]["setuptools"] == {
        "packages": ["own"],
        "package-data": {"own": ["py.typed", "*.pxd"]},
    }


def test_a_package_needs_the_version_that_generated_it_and_what_amqpcodec_is_built_with() -> None:
    settings = tomllib.loads(render_package(dialect(), "own")["pyproject.toml"])
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = f"amqpcodec=={__version__}"
    assert settings["build-system"] == ours["build-system"]
    assert settings["project"] == {
        "name": "own",
        "version": "0.9.1",
        "requires-python": ours["project"]["requires-python"],
        "dependencies": [needed],
    }


@pytest.mark.parametrize(("package", "project"), [("_own", "own"), ("own_", "own"), ("own_2", "own_2")])
def test_a_project_is_called_as_pip_allows(package: str, project: str) -> None:
    settings = tomllib.loads(render_package(dialect(), package)["pyproject.toml"])
    assert settings["project"]["name"] == project
    assert settings["tool"]["setuptools"]["packages"] == [package]


@pytest.mark.parametrize("package", ["_", "żółw"])
def test_a_package_name_that_is_no_name_of_a_project_is_refused(package: str) -> None:
    with pytest.raises(SpecError, match="no name that pip can install"):
        render_package(dialect(), package)


def test_a_package_cannot_be_called_as_the_one_it_builds_on() -> None:
    with pytest.raises(SpecError, match="--package amqpcodec: the name of the package"):
        render_package(dialect(), "amqpcodec")


@pytest.mark.parametrize("package", ["no-hyphens", "a.b", "", "9lives"])
def test_a_package_name_python_cannot_import_is_refused(package: str) -> None:
    with pytest.raises(SpecError, match="not a name that Python can import"):
        render_package(dialect(), package)


def test_a_short_name_that_is_another_methods_long_name_does_not_hide_it() -> None:
    names = {"name": "demo-call", "python_name": "DemoDemoCall", "short_name": "DemoCall"}
    longer = replace(method(), method_id=8, **names)
    text = render_module(dialect(class_of((), longer, method())), "demo", "demo.facts")
    assert "    Call = DemoCall\n    DemoCall = DemoDemoCall\n" in text


def test_methods_of_one_name_with_other_fields_have_no_common_function() -> None:
    short, long = (
        dialect(replace(class_of((), replace(method(field("a", type_)), name="deliver")), name="basic"))
        for type_ in ("short", "long")
    )
    assert render_contents([short, short]).count("cdef inline int deliver_at(") == 1
    with pytest.raises(SpecError, match="basic deliver: dialects have other fields"):
        render_contents([short, long])


def test_straight_code_writes_bits_together_and_flags_before_properties() -> None:
    fields = field("a", "short"), field("b", "bit"), field("c", "bit"), field("d", "table")
    basic = replace(class_of((fields[3], fields[0]), replace(method(*fields), name="publish")), name="basic")
    text = render_content_writers([dialect(basic)])
    publish, properties = text.split("cdef inline unsigned char *put_")[1:]
    assert re.findall(r"slots\[\d\]", publish) == [
        "slots[0]", "slots[1]", "slots[2]", "slots[1]", "slots[2]", "slots[3]",
    ]  # fmt: skip
    assert "p[0] = <unsigned char>((slots[1] is Py_True) << 0 | (slots[2] is Py_True) << 1)" in publish
    assert re.findall(r"flags \|= 0x(\w+)\n +p = put_field\(p, end, (\w+), slots\[(\d)\]", properties) == [
        ("8000", "TABLE_FIELD", "0"), ("4000", "SHORT_FIELD", "1"),
    ]  # fmt: skip
