"""What Python says of constructors, of the compiled build. The twin of constructors_py.py."""

from .._records import constructor_name
from .layout_c cimport describe_constructor


def describe(classes):
    """Have errors about the arguments of constructors name the class, and give classes a signature."""
    for cls in classes:
        describe_constructor(cls, constructor_name(cls))
