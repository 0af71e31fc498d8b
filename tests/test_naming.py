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
    ],
)
def test_class_names(names: tuple[str, ...], python_name: str) -> None:
    assert naming.class_name(*names) == python_name


def test_constant_and_module_names() -> None:
    assert naming.constant_name("frame-error") == "FRAME_ERROR"
    assert naming.constant_name("frame error") == "FRAME_ERROR"
    assert naming.module_name("my-broker-1.2") == "my_broker_1_2"
