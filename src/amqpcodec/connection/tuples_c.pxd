cpdef tuple make_event(object cls, tuple values)
