cpdef object look_up(bytes octets, object key, str profile, object limits)
cpdef bytes headers_in(bytes octets, bytes plan)
