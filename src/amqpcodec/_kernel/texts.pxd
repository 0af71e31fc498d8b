# Texts of the reader's cache: what they hash to, and whether two of them are equal, eight octets at a time.
# Up to seven octets before a text are read with it.
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from .octets cimport copy_short, word
from .reader_c cimport CachedText, Texts

cdef extern from "Python.h":
    bint PY_BIG_ENDIAN
    ctypedef struct PyASCIIObject:  # the octets of such a text follow right behind
        pass
    unsigned int PyUnicode_IS_ASCII(PyObject *text) noexcept
    PyObject *PyUnicode_New(Py_ssize_t size, Py_UCS4 maxchar) noexcept

cdef enum:
    CACHED_OCTETS = 48  # less than 64, see CachedText.mark
    PLACE_BYTES = 16  # of memory, which texts may take for each place: some are left empty
    TEXT_BYTES = 64  # about what a text takes beside its octets


cdef inline Py_ssize_t first(Py_ssize_t size) noexcept nogil:
    """Where the first word of a text begins: one shorter than a word is in that which ends where it does."""
    return min(size - 8, 0)


cdef inline uint64_t mask_of(Py_ssize_t size) noexcept nogil:
    """Return masks of the octets in the first and last word that belong to the text, which is not empty."""
    cdef int outside = <int>(-8 * first(size))
    return ~<uint64_t>0 >> outside if PY_BIG_ENDIAN else ~<uint64_t>0 << outside


cdef inline uint64_t mix_of(const unsigned char *p, Py_ssize_t size) noexcept nogil:
    """A hash of up to 32 octets of a text. What it leaves out only costs a miss: hits are compared whole."""
    cdef uint64_t mask = mask_of(size)
    cdef uint64_t mix = (word(p + first(size)) & mask) ^ (word(p + size - 8) & mask) * 0xC2B2AE3D27D4EB4FU
    if size > 16:
        mix += word(p + 8) * 0x165667B19E3779F9U ^ word(p + size - 16) * 0xD6E8FEB86659FD93U
    return (mix ^ mix >> 32) * 0x9E3779B97F4A7C15U


cdef inline bint same(const unsigned char *p, const unsigned char *q, Py_ssize_t size) noexcept nogil:
    """Return whether two texts of one size are equal."""
    cdef Py_ssize_t at = 8
    cdef uint64_t differ = word(p + first(size)) ^ word(q + first(size))
    differ |= word(p + size - 8) ^ word(q + size - 8)
    if differ & mask_of(size):
        return False
    while at < size - 8:
        if word(p + at) != word(q + at):
            return False
        at += 8
    return True


cdef inline const unsigned char *octets_of(PyObject *text) noexcept nogil:
    """Return where the octets of an ASCII text lie."""
    return <const unsigned char *>(<PyASCIIObject *>text + 1)


cdef inline PyObject *ascii_text(const unsigned char *p, Py_ssize_t size) noexcept:
    """Return ASCII octets as a text, or NULL with an exception."""
    cdef PyObject *text = PyUnicode_New(size, 127)
    if text is NULL or size == 0:  # an empty text is everybody's
        return text
    if size <= 255:
        copy_short(<unsigned char *>octets_of(text), p, size)
    else:
        memcpy(<unsigned char *>octets_of(text), p, <size_t>size)
    return text


cdef inline uint32_t mark_of(uint64_t mix, Py_ssize_t size) noexcept nogil:
    """Return the mark of a text that `mix_of` made a hash of."""
    return (<uint32_t>(mix >> 16) & ~<uint32_t>63) | <uint32_t>size


cdef inline bint is_kept(CachedText *kept, uint32_t mark, const unsigned char *p, Py_ssize_t size) noexcept nogil:
    """Return whether the text that is kept in a place is this one."""
    return kept.mark == mark and same(octets_of(kept.text), p, size)


cdef inline CachedText *place_of(Texts *texts, uint64_t mix) noexcept nogil:
    """Return the place for a text that `mix_of` made a hash of."""
    return texts.places + (mix >> 48 & texts.mask)


cdef inline void note_miss(Texts *texts, CachedText *kept, uint32_t mark, PyObject *text) noexcept:
    """Take note of a text that is not kept. It is from when it is met twice, with no other in its place between:
    those that never repeat (message ids) would drive out those that do, and be freed when nothing has them at hand
    any more. A hostile stream can only cause misses."""
    if kept.missed != mark:
        kept.missed = mark
    elif PyUnicode_IS_ASCII(text):
        _drop(texts, kept)
        while texts.bytes + _bytes_of(mark) > PLACE_BYTES * (texts.mask + 1) and texts.bytes:
            texts.oldest = texts.oldest + 1 & texts.mask
            _drop(texts, texts.places + texts.oldest)
        Py_INCREF(<object>text)
        kept.text = text
        kept.mark = mark
        texts.bytes += _bytes_of(mark)


cdef inline size_t _bytes_of(uint32_t mark) noexcept nogil:
    """Return about what a text of that mark takes."""
    return TEXT_BYTES + (mark & 63)


cdef inline void _drop(Texts *texts, CachedText *kept) noexcept:
    """Keep a text no longer, if there is one in a place."""
    cdef PyObject *old = kept.text
    if old is not NULL:
        texts.bytes -= _bytes_of(kept.mark)
        kept.text = NULL
        kept.mark = 0
        Py_XDECREF(old)
