# cython: boundscheck=False, wraparound=False
"""How connections of pika send.

The frames of a message are sent as one piece, where pika makes a call of the system for each. For a piece that goes
out, pika begins to watch the socket for room, and ends it. That costs as much as all the rest of an acknowledgement.
Here it is done at once, if nothing is logged and the poller is one of pika's for Linux.
"""

from logging import DEBUG

from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.object cimport PyObject

from .._kernel.guards_c cimport Guards
from ._fast_c cimport FastFunction, call_original, count_of, fast_function
from ._lookup cimport look_up

cdef enum:
    MOST_JOINED = 65536  # octets


cdef class Called:
    """Guards of what a function looks up, and the logger of its module, if it logs."""

    cdef Guards guards
    cdef object logger

    cdef bint as_ever(self) except -1:
        """Return whether nothing but pika's own functions would be called, and nothing logged."""
        return self.guards.unchanged() and (self.logger is None or not self.logger.isEnabledFor(DEBUG))


cdef class Polling(Called):
    """Guards of `update_handler`, too: the classes of pollers that are served, and the events in pika's order."""

    cdef tuple pollers
    cdef tuple events

    cdef bint notes(self, object poller, object descriptor, object wanted) except -1:
        """Note what a poller watches a descriptor for; False if it keeps that in another way than pika."""
        cdef dict own = poller.__dict__
        if "_set_handler_events" in own or "_modify_fd_events" in own or type(poller._fd_events) is not dict:
            return False
        watched = [look_up(poller._fd_events, event, None) for event in self.events]
        if not all([type(descriptors) is set for descriptors in watched]):
            return False
        for event, descriptors in zip(self.events, watched):
            if wanted & event:
                (<set>descriptors).add(descriptor)
            else:
                (<set>descriptors).discard(descriptor)
        return True


cdef bytes _joined(list frames):
    """Return frames as one piece; None if there are none, if they are too large, or one is empty or no octets."""
    cdef Py_ssize_t size = 0
    for frame in frames:
        if type(frame) is not bytes or not frame:
            return None
        size += PyBytes_GET_SIZE(frame)
    if not 0 < size <= MOST_JOINED:
        return None
    return frames[0] if len(frames) == 1 else b"".join(frames)


cdef object _watcher(object adapter, object descriptor):
    """Return the callbacks for a descriptor of which there is one for reading; None if there is none."""
    watchers = adapter._watchers
    if type(watchers) is not dict or type(descriptor) is not int:
        return None
    found = look_up(watchers, descriptor, None)
    return None if found is None or found.reader is None else found


# -- entries: calls as the interpreter has them

cdef object _output(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Called how = <Called>(<FastFunction>function).state
    octets = None
    if names is NULL and count_of(nargsf) == 2 and type(<object>arguments[1]) is list and how.as_ever():
        octets = _joined(<list>arguments[1])
    if octets is None:
        return call_original(function, arguments, nargsf, names)
    connection, frames = <object>arguments[0], <list>arguments[1]
    first = PyBytes_GET_SIZE(frames[0])
    connection.bytes_sent += first
    connection.frames_sent += 1
    connection._adapter_emit_data(octets)
    connection.bytes_sent += PyBytes_GET_SIZE(octets) - first
    connection.frames_sent += len(frames) - 1


cdef object _set_writer(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Called how = <Called>(<FastFunction>function).state
    if names is NULL and count_of(nargsf) == 3 and callable(<object>arguments[2]) and how.as_ever():
        adapter, descriptor = <object>arguments[0], <object>arguments[1]
        watcher = _watcher(adapter, descriptor)
        if watcher is not None and watcher.writer is None:
            watcher.writer = <object>arguments[2]
            adapter._loop.update_handler(descriptor, adapter._readable_mask | adapter._writable_mask)
            return None
    return call_original(function, arguments, nargsf, names)


cdef object _remove_writer(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Called how = <Called>(<FastFunction>function).state
    if names is NULL and count_of(nargsf) == 2 and how.as_ever():
        adapter, descriptor = <object>arguments[0], <object>arguments[1]
        watcher = _watcher(adapter, descriptor)
        if watcher is not None and watcher.writer is not None:
            watcher.writer = None
            adapter._loop.update_handler(descriptor, adapter._readable_mask)
            return True
    return call_original(function, arguments, nargsf, names)


cdef object _update_handler(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Polling how = <Polling>(<FastFunction>function).state
    if names is NULL and count_of(nargsf) == 3 and how.as_ever():
        poller, descriptor, events = <object>arguments[0], <object>arguments[1], <object>arguments[2]
        if type(poller) in how.pollers and type(descriptor) is int and type(events) is int:
            if how.notes(poller, descriptor, events):
                if poller._poll is not None:
                    poller._poll.modify(descriptor, events)
                return None
    return call_original(function, arguments, nargsf, names)


# -- functions in the place of pika's

def fast_output(original, Guards guards):
    """`pika.connection.Connection._output_marshaled_frames`."""
    return fast_function(original, _output, _called(guards, None))


def fast_set_writer(original, Guards guards, logger):
    """`SelectorIOServicesAdapter.set_writer`."""
    return fast_function(original, _set_writer, _called(guards, logger))


def fast_remove_writer(original, Guards guards, logger):
    """`SelectorIOServicesAdapter.remove_writer`."""
    return fast_function(original, _remove_writer, _called(guards, logger))


def fast_update_handler(original, Guards guards, pollers, events):
    """`_PollerBase.update_handler`.

    Args:
        original: the function.
        guards: of what it looks up, and of the classes.
        pollers: the classes that are served.
        events: those that a poller notes, in pika's order.
    """
    cdef Polling how = Polling.__new__(Polling)
    how.guards, how.pollers, how.events = guards, tuple(pollers), tuple(events)
    return fast_function(original, _update_handler, how)


cdef Called _called(Guards guards, object logger):
    cdef Called how = Called.__new__(Called)
    how.guards, how.logger = guards, logger
    return how
