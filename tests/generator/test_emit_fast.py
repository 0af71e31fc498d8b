"""The text of the fast paths of the pure build."""

from __future__ import annotations

import re
from dataclasses import replace

from codecgen.emit_fast import method_functions, properties_functions, render_fast
from codecgen.model import Class, Field
from demo_dialect import bits, class_of, dialect, field, function, method


def fast_text(*fields: Field) -> str:
    """The fast paths of a method with these fields."""
    return "\n".join(method_functions(method(*fields)).values())


def fast_properties_text(*fields: Field) -> str:
    return "\n".join(properties_functions(class_of(fields)).values())


def test_the_pure_build_reads_what_has_a_fixed_size_in_one_go() -> None:
    fields = (field("a", "octet"), field("b", "long"), *bits(9), field("c", "timestamp"))
    flags = ["record.b0 = number3 & 1 != 0", "record.b1 = number3 & 2 != 0", "record.b2 = number3 & 4 != 0"]
    read = function(fast_text(*fields), "read_DemoCall")
    assert read[0] == "record.a, record.b, number3, number4, number5 = _read_BIBBQ(data, pos)"
    assert read[1:4] == flags
    assert read[-3:] == ["record.b8 = number4 & 1 != 0", "record.c = timestamp(number5)", "return pos + 15"]


def test_the_pure_build_reads_a_length_together_with_what_is_before_it() -> None:
    assert function(fast_text(field("n"), field("s", "shortstr"), field("t", "table")), "read_DemoCall") == [
        "record.n, size = _read_HB(data, pos)",
        "start = pos + 3",
        "pos = start + size",
        "record.s = data[start:pos].decode()",
        "start = pos + 4",
        "pos = start + _read_I(data, pos)[0]",
        "record.t = reader.fast_table(data, start, pos, end)",
        "return pos",
    ]


def test_the_pure_build_looks_whether_a_longstr_is_there_before_copying_it() -> None:
    assert function(fast_text(field("s", "longstr")), "read_DemoCall")[2:] == [
        "if pos > end:",
        "    raise Declined",
        "record.s = bytes(data[start:pos])",
        "return pos",
    ]


def test_the_pure_build_writes_what_has_a_fixed_size_in_one_go() -> None:
    fields = (field("n", "longlong"), *bits(2), field("s", "shortstr"), field("when", "timestamp"))
    assert function(fast_text(*fields), "write_DemoCall") == [
        "value0 = record.n",
        "value1 = record.b0",
        "value2 = record.b1",
        "if type(value0) is not int or type(value1) is not bool or type(value2) is not bool:",
        "    raise Declined",
        "octets = _encode(record.s)",
        "out += _write_HHQBB(9, 7, value0, value1 | value2 << 1, len(octets))",
        "out += octets",
        "out += _write_Q(seconds(record.when))",
    ]


def test_the_pure_build_writes_what_has_a_length_of_its_own_on_its_own() -> None:
    fields = (field("s", "longstr"), field("t", "table"), field("b", "bit"))
    assert function(fast_text(*fields), "write_DemoCall")[4:] == [
        "out += long_octets(record.s)",
        "fast_table(out, record.t, rules.depth_limit, rules.fast_writers)",
        "out.append(value2)",
    ]


def test_conditions_that_do_not_fit_on_a_line_stand_on_one_each() -> None:
    lines = function(fast_text(*bits(5)), "write_DemoCall")[5:12]
    tests = [f"type(value{place}) is not bool" for place in range(5)]
    assert lines == ["if (", f"    {tests[0]}", *(f"    or {test}" for test in tests[1:]), "):"]


def test_a_method_without_arguments_has_a_fast_path_too() -> None:
    assert function(fast_text(), "read_DemoCall") == ["return pos"]
    assert function(fast_text(), "write_DemoCall") == ["out += _write_HH(9, 7)"]


def test_properties_are_read_by_their_flags_from_the_highest_down() -> None:
    text = fast_properties_text(field("s", "shortstr"), field("on", "bit"))
    assert function(text, "read_DemoProperties") == [
        "flags = data[pos] << 8 | data[pos + 1]",
        "pos += 2",
        "if flags >= 0x8000:",
        "    flags -= 0x8000",
        "    start = pos + 1",
        "    pos = start + data[pos]",
        "    record.s = data[start:pos].decode()",
        "else:",
        "    record.s = None",
        "if flags >= 0x4000:",
        "    flags -= 0x4000",
        "    record.on = True",
        "else:",
        "    record.on = False",
        "if flags:",
        "    raise Declined",
        "return pos",
    ]


def test_properties_are_written_behind_their_flags() -> None:
    text = fast_properties_text(field("n", "octet"), field("on", "bit"))
    assert function(text, "write_DemoProperties") == [
        "flags = 0",
        "at = len(out)",
        'out += b"\\0\\0"',
        "value: Any = record.n",
        "if value is not None:",
        "    flags |= 0x8000",
        "    if type(value) is not int:",
        "        raise Declined",
        "    out.append(value)",
        "value = record.on",
        "if type(value) is not bool:",
        "    raise Declined",
        "if value:",
        "    flags |= 0x4000",
        "out[at] = flags >> 8",
        "out[at + 1] = flags & 0xFF",
    ]


def fast_paths(*classes: Class) -> list[str]:
    """The functions in the module of fast paths of a dialect."""
    return re.findall(r"^def (\w+)\(", render_fast(dialect(*classes), "demo.methods_py"), re.MULTILINE)


def test_what_is_rare_has_no_fast_path() -> None:
    assert fast_paths(class_of((), method(field("n")))) == ["read_DemoCall", "write_DemoCall"]
    assert fast_paths(class_of((), method(field("n"), field("c", "content")))) == []
    few, many = (tuple(field(f"p{position}") for position in range(count)) for count in (15, 16))
    assert fast_paths(class_of(few)) == ["read_DemoProperties", "write_DemoProperties"]
    assert fast_paths(class_of(many)) == []


def test_classes_with_the_same_fields_share_a_function_that_reads() -> None:
    other = replace(method(field("n")), method_id=8, name="other", python_name="DemoOther")
    third = replace(method(field("m")), method_id=9, name="third", python_name="DemoThird")
    classes = class_of((), method(field("n")), other, third)
    text = render_fast(dialect(classes), "demo.methods_py")
    # What writes a method writes its ids as well.
    assert fast_paths(classes) == [
        "read_DemoCall", "write_DemoCall", "write_DemoOther", "read_DemoThird", "write_DemoThird"
    ]  # fmt: skip
    assert text.endswith("\n\n\n# Classes that have the fields of another.\nread_DemoOther = read_DemoCall\n")


def test_a_dialect_takes_the_fast_paths_that_are_those_of_its_base() -> None:
    base = dialect(class_of((field("p"),), method(field("n"))))
    derived = dialect(class_of((field("p"),), method(field("n", "long"))))
    text = render_fast(derived, "demo.methods_py", base)
    taken = "from demo.demo_1_fast_py import (\n    read_DemoProperties, write_DemoProperties\n)\n"
    assert taken in text
    assert re.findall(r"^def (\w+)\(", text, re.MULTILINE) == ["read_DemoCall", "write_DemoCall"]


def test_a_module_of_fast_paths_has_the_structs_that_it_uses_and_no_others() -> None:
    classes = class_of((), method(field("n"), field("s", "shortstr")))
    text = render_fast(dialect(classes), "demo.methods_py")
    assert re.findall(r"^_(?:read|write)_.*", text, re.MULTILINE) == [
        '_read_HB = Struct(">HB").unpack_from',
        '_write_HHHB = Struct(">HHHB").pack',
    ]
