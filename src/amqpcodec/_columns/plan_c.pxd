# What is done with every method and content header of a dialect: which field goes to which column.
from libc.stdint cimport uint64_t

from .buffers_c cimport Column, Columns

cdef enum:
    BIT = 1
    OCTET = 2
    SHORT = 3
    LONG = 4
    LONGLONG = 5
    SHORTSTR = 6
    LONGSTR = 7
    TIMESTAMP = 8
    TABLE = 9
    CONTENT = 10


cdef struct Step:
    int type  # of the field on the wire
    int bit  # its place in a packed octet, for bits
    Column *column  # where it goes; NULL if nobody asked for it
    Column *raw  # where the octets of a table go


cdef struct Shape:  # of a method's arguments, or of the properties of a class
    uint64_t key
    bint carries_content
    bint exact  # left to the exact way, whatever is in it
    bint read  # whether rows depend on what is in it
    Step *steps
    int count
    const char *name
    size_t name_size
    const char *kind  # the name without its class
    size_t kind_size


cdef struct Layout:
    unsigned char kinds[256]  # table tag to wire kind, 0 for a tag nobody knows
    bint checks  # whether fields that nobody asked for are looked into
    unsigned int frame_types  # a bit each
    unsigned int connection_class
    Column *arguments  # the struct of a method's arguments, in `methods`
    Column *properties  # the struct of them, in `messages`
    Shape *shapes
    int count
    Shape **slots  # the shapes by key
    size_t mask


cdef const Shape *shape_of_method(const Layout *layout, uint64_t index) noexcept nogil
cdef const Shape *shape_of_content(const Layout *layout, uint64_t class_id) noexcept nogil
cdef bint put_arguments(
    const Layout *layout, const Shape *shape, const unsigned char *p, const unsigned char *end, Py_ssize_t row,
    const unsigned char *limit,
) noexcept nogil
cdef bint put_properties(
    const Layout *layout, const Shape *shape, const unsigned char *p, const unsigned char *end, Py_ssize_t row,
    const unsigned char *limit,
) noexcept nogil
cdef bint is_sound(const Layout *layout, const unsigned char *p, size_t size) noexcept nogil


cdef class Plan:
    cdef readonly object module
    cdef Layout layout
    cdef list _kept  # the octets of names
    cdef Columns _columns

    cdef int _describe(self, object record, uint64_t key, object make, bint exact) except -1
    cdef int _index(self) except -1
