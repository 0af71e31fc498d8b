"""The rule that makes Python names of the names in the XML."""

from __future__ import annotations

import pytest
from codecgen import naming


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("no-wait", "no_wait"),
        ("no wait", "no_wait"),
        ("Delivery Tag", "delivery_tag"),
        ("nowait", "nowait"),
        ("reserved-1", "reserved_1"),
        ("global", "global_"),
        ("return", "return_"),
        ("none", "none"),
        ("async", "async_"),
        ("type", "type"),
        ("match", "match"),
        ("case", "case"),
        ("bytes", "bytes"),
        ("class-id", "class_id"),
        ("self", "self_"),
        ("spec", "spec_"),
        ("validate", "validate_"),
        ("cdef", "cdef_"),
        ("include", "include_"),
        ("errno", "errno_"),
        ("int", "int"),
    ],
)
def test_attribute_names(name: str, attribute: str) -> None:
    assert naming.attribute_name(name) == attribute


@pytest.mark.parametrize("name", ["1st", "_private", "--init--", "__init__", "naïve", "a.b", "a+b", ""])
def test_names_that_cannot_be_attributes_are_refused(name: str) -> None:
    with pytest.raises(naming.RefusedNameError, match="does not begin with a letter"):
        naming.attribute_name(name)


@pytest.mark.parametrize(
    ("names", "python_name"),
    [
        (("basic", "get-ok"), "BasicGetOk"),
        (("get-ok",), "GetOk"),
        (("return",), "Return"),
        (("basic", "return"), "BasicReturn"),
        (("none",), "None_"),
        (("true",), "True_"),
        (("basic", "none"), "BasicNone"),
        (("update-secret-ok",), "UpdateSecretOk"),
        (("v2-open",), "V2Open"),
        (("none", "true"), "NoneTrue"),
        (("none", "properties"), "NoneProperties"),
        (("encoder",), "Encoder_"),
        (("frame", "decoder"), "FrameDecoder_"),
        (("message-decoder",), "MessageDecoder_"),
        (("method", "spec"), "MethodSpec_"),
        (("encoder", "properties"), "EncoderProperties"),
    ],
)
def test_class_names(names: tuple[str, ...], python_name: str) -> None:
    assert naming.class_name(*names) == python_name


@pytest.mark.parametrize(
    ("name", "python_name"),
    [("get-ok", "GetOk"), ("none", "None_"), ("encoder", "Encoder"), ("frame-decoder", "FrameDecoder")],
)
def test_inside_its_class_a_method_avoids_only_keywords(name: str, python_name: str) -> None:
    assert naming.short_name(name) == python_name


def test_exceptions_for_reply_codes_have_the_prefix_before_anything_is_avoided() -> None:
    assert naming.reply_code_name("not-found") == "AmqpNotFound"
    assert naming.reply_code_name("none") == "AmqpNone"
    assert naming.reply_code_name("encoder") == "AmqpEncoder"


def test_constant_and_module_names() -> None:
    assert naming.constant_name("dialect") == "DIALECT_"
    assert naming.constant_name("methods") == "METHODS_"
    assert naming.constant_name("properties") == "PROPERTIES_"
    assert naming.constant_name("frame-error") == "FRAME_ERROR"
    assert naming.constant_name("frame error") == "FRAME_ERROR"
    assert naming.module_name("my-broker-1.2") == "my_broker_1_2"
