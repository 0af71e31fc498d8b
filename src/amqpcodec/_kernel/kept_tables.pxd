# What readers ask of a cache for each table. It is here, since all that cimport the class would have it otherwise.
from libc.stdint cimport uint64_t

from .table_cache_c cimport TABLE_SLOTS, CachedTable, TableCache


cdef inline CachedTable *_place_of(TableCache tables, uint64_t mark) noexcept:
    return tables._slots + (mark >> 48 & (TABLE_SLOTS - 1))


cdef inline object find_table(TableCache tables, const unsigned char *start, Py_ssize_t size, uint64_t mark):
    """Return a new dict of a table that is kept, or None."""
    cdef CachedTable *kept = _place_of(tables, mark)
    return tables._compared(kept, start, size) if kept.mark == mark else None


cdef inline int miss_table(
    TableCache tables, const unsigned char *start, Py_ssize_t size, uint64_t mark, dict table
) except -1:
    """Take note of a table that `find_table` did not know. Those that never repeat would drive out those that do, so it
    is kept when it comes again and again, with no other in its place between."""
    cdef CachedTable *kept = _place_of(tables, mark)
    if kept.missed == mark:
        return tables._missed_again(kept, start, size, table)
    kept.missed = mark
    kept.missed_whole = 0
    return 0
