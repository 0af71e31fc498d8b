# cython: cdivision=True
# Cells of columns as fields of frames, for the encoder of the compiled build. There is room for all octets that a
# batch can lead to. A row may be DECLINED; the octets put for it are then removed.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from .._protocol.wire_types cimport LONG, LONGLONG, LONGSTR, OCTET, SHORT, SHORTSTR, TABLE, TIMESTAMP
from .._kernel.civil cimport LAST_SECOND
from .._kernel.octets cimport is_ascii, put16, put32, put64
from .._kernel.wire cimport ENVELOPE_SIZE, FRAME_END
from .buffers_c cimport Octets, View, cell_at, copied_ascii, is_given, is_utf8, number_at, offset_at

cdef enum:
    DECLINED = 0  # what became of a row
    WRITTEN = 1
    ABSENT = 2  # of a property
    MOST_ENTRIES = 64  # of a map; comparing each key with each would take too long beyond


cdef struct Source:  # of a field
    int type
    int bit
    Py_ssize_t column  # of a method among all, of a property among those inside `properties`; -1 for none
    bint headers
    const View *view  # of the column, in the batch being written; NULL if it has no values


cdef inline unsigned char *next_octets(Octets *out, size_t size) noexcept nogil:
    """Where the next octets go. There is room for all that a batch can lead to, see `MessageEncoder._most`."""
    out.used += size
    return out.start + out.used - size


cdef inline bint is_text(const unsigned char *p, size_t size) noexcept nogil:
    return is_ascii(p, <Py_ssize_t>size) or is_utf8(p, size)


cdef inline int put_long(Octets *out, const unsigned char *p, size_t size) noexcept nogil:
    """Octets with their number in front."""
    cdef unsigned char *to = next_octets(out, 4 + size)
    put32(to, <uint32_t>size)
    if size:
        memcpy(to + 4, p, size)
    return WRITTEN


cdef inline size_t size_of_number(int type) noexcept nogil:
    """Octets of a number; 0 for contents, and for types that only the slow path knows."""
    if type == OCTET:
        return 1
    if type == SHORT:
        return 2
    if type == LONG:
        return 4
    return 8 if type == LONGLONG or type == TIMESTAMP else 0


cdef inline int put_number(Octets *out, int type, uint64_t number) noexcept nogil:
    cdef size_t size = size_of_number(type)
    cdef unsigned char *to
    if type == TIMESTAMP:
        number //= 1_000_000
        if number > LAST_SECOND:
            return DECLINED
    elif size < 8 and number >> (8 * size):
        return DECLINED
    to = next_octets(out, size)
    if size == 1:
        to[0] = <unsigned char>number
    elif size == 2:
        put16(to, <uint32_t>number)
    elif size == 4:
        put32(to, <uint32_t>number)
    else:
        put64(to, number)
    return WRITTEN


cdef inline bint are_distinct(const View *keys, size_t first, size_t last) noexcept nogil:
    """Return whether no two keys of a map are equal."""
    cdef size_t one, other, size, length
    cdef const unsigned char *p
    cdef const unsigned char *q
    for one in range(first, last):
        p = cell_at(keys, <Py_ssize_t>one, &size)
        for other in range(first, one):
            q = cell_at(keys, <Py_ssize_t>other, &length)
            if size == length and memcmp(p, q, size) == 0:
                return False
    return True


cdef inline int put_map(Octets *out, const View *view, Py_ssize_t row, bint voids) noexcept nogil:
    """A map as a field table of text and voids; an empty one without a map."""
    cdef size_t begin = out.used, entry, last, size
    cdef const unsigned char *p
    cdef const View *keys
    cdef unsigned char *to = next_octets(out, 4)
    if view is NULL:
        put32(to, 0)
        return WRITTEN
    keys = view.inside.inside
    entry, last = offset_at(view, row), offset_at(view, row + 1)
    if entry < last and (view.inside.empty or keys.empty):
        return DECLINED
    if last - entry > MOST_ENTRIES or not are_distinct(keys, entry, last):
        return DECLINED
    while entry < last:
        p = cell_at(keys, <Py_ssize_t>entry, &size)
        if size > 255 or not is_given(keys, <Py_ssize_t>entry):
            return DECLINED
        to = next_octets(out, 2 + size)
        to[0] = <unsigned char>size
        if not copied_ascii(to + 1, p, size) and not is_utf8(p, size):
            return DECLINED
        if is_given(keys + 1, <Py_ssize_t>entry):
            to[1 + size] = 83  # S
            p = cell_at(keys + 1, <Py_ssize_t>entry, &size)
            if not is_text(p, size):
                return DECLINED
            put_long(out, p, size)
        elif voids:
            to[1 + size] = 86  # V
        else:
            return DECLINED
        entry += 1
    put32(out.start + begin, <uint32_t>(out.used - begin - 4))
    return WRITTEN


cdef inline int put_other(Octets *out, const Source *source, Py_ssize_t row, bint voids) noexcept nogil:
    """Handle any field but short strings, which most are."""
    cdef const View *view = source.view
    cdef const unsigned char *p = NULL
    cdef size_t size = 0
    cdef uint64_t number = 0
    cdef bint given = is_given(view, row)
    if source.type == TABLE:
        return put_map(out, view if given else NULL, row, voids)
    if source.type == LONGSTR:
        if given:
            p = cell_at(view, row, &size)
        return put_long(out, p, size)
    if not size_of_number(source.type):
        return DECLINED
    if given:
        if number_at(view, row) < 0:
            return DECLINED
        number = <uint64_t>number_at(view, row)
    return put_number(out, source.type, number)


cdef inline int put_field(Octets *out, const Source *source, Py_ssize_t row, bint voids) noexcept nogil:
    """Write one field that is no bit; zero or empty where it is null."""
    cdef unsigned char *to
    cdef const unsigned char *p = NULL
    cdef size_t size = 0
    if source.type != SHORTSTR:
        return put_other(out, source, row, voids)
    if is_given(source.view, row):
        p = cell_at(source.view, row, &size)
        if size > 255:
            return DECLINED
    to = next_octets(out, 1 + size)
    to[0] = <unsigned char>size
    return WRITTEN if copied_ascii(to + 1, p, size) or is_utf8(p, size) else DECLINED


# -- frames


cdef inline void begin_frame(Octets *out, int frame_type, unsigned int channel) noexcept nogil:
    cdef unsigned char *to = next_octets(out, ENVELOPE_SIZE)
    to[0] = <unsigned char>frame_type
    put16(to + 1, channel)


cdef inline int end_frame(Octets *out, size_t begin, uint64_t limit) noexcept nogil:
    """Put in the size of a frame, and its last octet."""
    cdef size_t size = out.used - begin - ENVELOPE_SIZE
    cdef unsigned char *to = next_octets(out, 1)
    if size > limit:
        return DECLINED
    put32(out.start + begin + 3, <uint32_t>size)
    to[0] = FRAME_END
    return WRITTEN
