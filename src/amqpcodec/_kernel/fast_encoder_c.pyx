"""The fast path to one method frame, in C. The twin of fast_encoder_py.py."""

from cpython.object cimport PyObject

from .encoder_c cimport Encoder as SlowEncoder
from .fixed_c cimport Fixed


cdef class Encoder(SlowEncoder):
    __doc__ = SlowEncoder.__doc__  # the generated classes have none of their own, see fast_encoder_py.py

    cdef object _one_method(self, object channel, object method, object frame_max, bint validate):
        """From values to octets in one go, for a method whose frames have one size."""
        cdef Fixed *fixed
        if frame_max is None and not validate and self._methods is not None:
            fixed = self._methods.fixed.find((<PyObject *>method).ob_type)
            if fixed is not NULL:
                octets = self._methods.fixed.frame(fixed, channel, method, self._limit)
                if octets is not None:
                    return octets
        return SlowEncoder._one_method(self, channel, method, frame_max, validate)
