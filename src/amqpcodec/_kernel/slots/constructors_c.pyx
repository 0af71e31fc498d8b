"""Constructors, their names and signatures in the compiled build. The twin of constructors_py.py."""

from ..._records import constructor_name, set_fields as set_one_by_one
from .layout_c cimport add_attributes, describe_constructor, hand_down_step, put_attribute, put_fields
from .makers_c cimport octets_before_slots


def describe(classes):
    """Have errors about the arguments of constructors name the class, and give classes a signature. Have subclasses of
    iterators step without a look-up."""
    for cls in classes:
        describe_constructor(cls, constructor_name(cls))
        if "__next__" in vars(cls):
            hand_down_step(cls)


def give_specs(classes, facts):
    """Give generated classes their `spec`, which a module of facts has by their names, and the names that follow from
    it: statements in each class would be a quarter of the octets of a dialect."""
    for cls in classes:
        spec = getattr(facts, cls.__name__)
        names = {
            "spec": spec,
            "__slots__": tuple([field.attribute for field in spec.fields]),
            "__match_args__": tuple([field.attribute for field in spec.fields if not field.reserved]),
        }
        for name, value in names.items():
            put_attribute(cls, name, value)


def expose(classes):
    """Make the slots of classes attributes, in the order of `__match_args__`."""
    for cls in classes:
        names = list(cls.__match_args__)
        add_attributes(cls, names, octets_before_slots(cls, len(names)))


def set_fields(record, tuple positional, dict named):
    """Set the fields of a record, such as one of a subclass, as the constructor of its class in the pure build."""
    if not put_fields(record, positional, named):
        set_one_by_one(record, positional, named)
