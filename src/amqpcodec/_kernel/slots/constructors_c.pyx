"""Names and signatures of constructors in the compiled build. The twin of constructors_py.py."""

from ..._records import constructor_name
from .layout_c cimport add_attributes, describe_constructor
from .makers_c cimport octets_before_slots


def describe(classes):
    """Have errors about the arguments of constructors name the class, and give classes a signature."""
    for cls in classes:
        describe_constructor(cls, constructor_name(cls))


def expose(classes):
    """Make the slots of classes attributes, in the order of `__match_args__`."""
    for cls in classes:
        names = list(cls.__match_args__)
        add_attributes(cls, names, octets_before_slots(cls, len(names)))
