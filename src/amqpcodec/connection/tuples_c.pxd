cpdef tuple make_event(object cls, tuple values)
cpdef tuple message_received(
    object number, object method, object properties, object body, object request, object sequence_number
)
