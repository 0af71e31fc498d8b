"""The routines of a layout in C. The twin of routines_py.py."""


cdef class Routines:
    """One function fills the slots of records of a layout, and one writes what is in them. Both may decline."""


cdef Routines routines(ReadRoutine read, WriteRoutine write):
    cdef Routines made = Routines.__new__(Routines)
    made.read = read
    made.write = write
    return made
