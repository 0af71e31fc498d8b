"""The routines of a layout in C. The twin of routines_py.py."""


cdef class Routines:
    """The two functions that fill and write the slots of records of one layout. Both may decline."""


cdef Routines routines(ReadRoutine read, WriteRoutine write):
    cdef Routines made = Routines.__new__(Routines)
    made.read = read
    made.write = write
    return made
