# Content order: the stages and verdicts of content_order.py in C, without the interpreter lock.
cdef enum Stage:
    NO_CONTENT = 0
    BEFORE_HEADER = 1
    IN_BODY = 2


cdef enum Verdict:
    IN_ORDER = 0
    CUT_OFF = 1
    NO_METHOD = 2
    SECOND_HEADER = 3
    OTHER_CLASS = 4
    TOO_LARGE = 5
    NO_HEADER = 6
    TOO_MUCH = 7
    TOO_MANY = 8


cdef inline Verdict judge_method(int stage) noexcept nogil:
    return IN_ORDER if stage == NO_CONTENT else CUT_OFF


cdef inline Verdict judge_header(
    int stage, bint same_class, unsigned long long body_size, unsigned long long limit
) noexcept nogil:
    if stage != BEFORE_HEADER:
        return NO_METHOD if stage == NO_CONTENT else SECOND_HEADER
    if not same_class:
        return OTHER_CLASS
    return IN_ORDER if body_size <= limit else TOO_LARGE


cdef inline Verdict judge_body(int stage, unsigned long long size, unsigned long long left) noexcept nogil:
    if stage != IN_BODY:
        return NO_HEADER
    return IN_ORDER if size <= left else TOO_MUCH
