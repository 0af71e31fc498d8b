"""How often the fast path of a peer served a call, and why it did not."""


cdef class Counts:
    """Calls served by the fast path, and calls left to the peer's own functions by reason.

    Threads without a global lock may lose some: what is counted is for people to look at.
    """

    def __init__(self):
        self.declined = {}

    cdef int decline(self, str reason) except -1:
        """Count a call that was left to the peer."""
        self.declined[reason] = self.declined.get(reason, 0) + 1
        return 0

    def add(self, reason):
        """Count a call that Python code has left to the peer."""
        self.decline(reason)
