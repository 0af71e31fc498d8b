# cython: boundscheck=False, wraparound=False
"""py-amqp's `frame_handler` and `frame_writer` in C.

Both make a function for one connection. Ours is made together with py-amqp's own, and works on the state in
the cells of that: which frame a channel expects, the messages that are not whole, the lock. So either may
have any single frame, and no connection has two states.
"""

from types import FunctionType, MethodType

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_DelItem, PyDict_SetItem
from cpython.memoryview cimport PyMemoryView_FromObject
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8String
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from .._kernel.octets cimport u16, u32, u64
from .._kernel.reader_c cimport Reader
from .._kernel.wire cimport BODY, HEADER, HEARTBEAT, METHOD, OVERHEAD
from .._kernel.writer_c cimport Writer
from ..errors import EncodeError
from ._amqp_c cimport (
    CHUNKS, CONTENT, FRAME_ARGS, FRAME_METHOD, PROPERTIES, READY, RECEIVED, SIZE, Codec, Messages, index_of, stands_for,
    unwrapped,
)
from ._amqp_loops_c cimport look_at_once, read_ahead
from ._fast_c cimport FastFunction, call_original, count_of, fast_function
from ._guards_c cimport Guards
from ._lookup cimport look_up

cdef enum:
    MOST_CONTENT_METHODS = 8
    HEAD = 12  # octets of a content header before the flags
    DELIVER = 60 << 16 | 60

cdef object _NOTHING = object()


cdef class Framing:
    """The functions that take the place of py-amqp's.

    Args:
        codec: for what frames carry.
        messages: for the class of messages.
        framing: the module `amqp.method_framing`.
        called: guards what the functions look up in their modules.
        dispatch: hands on what has come; None to leave that to py-amqp.
        looks: connections made from now on find by one call of the system that nothing has come.
        ahead: they read ahead once they consume.
    """

    cdef readonly FastFunction frame_handler
    cdef readonly FastFunction frame_writer
    cdef readonly list replaced  # of what frames are read and written by, before these functions were made
    cdef Codec _codec
    cdef Dispatch _dispatch
    cdef bint _looks
    cdef bint _ahead
    cdef Messages _messages
    cdef Guards _called
    cdef uint32_t _content_methods[MOST_CONTENT_METHODS]
    cdef int _content_count

    def __cinit__(
        self, Codec codec, Messages messages, framing, Guards called, Dispatch dispatch, bint looks, bint ahead
    ):
        self._codec = codec
        self._dispatch = dispatch
        self._looks = looks
        self._ahead = ahead
        self.frame_handler = fast_function(unwrapped(framing.frame_handler), _make_handler, self)
        self.frame_writer = fast_function(unwrapped(framing.frame_writer), _make_writer, self)
        self._messages = messages
        self._called = called
        self.replaced = called.replaced + ([] if dispatch is None else dispatch._called.replaced)
        for class_id, method_id in framing._CONTENT_METHODS:
            self._content_methods[self._content_count] = <uint32_t>(class_id << 16 | method_id)
            self._content_count += 1

    cdef bint carries_content(self, uint32_t index) noexcept:
        """Return whether a content header follows the method."""
        cdef int at
        for at in range(self._content_count):
            if self._content_methods[at] == index:
                return True
        return False

    cdef bint takes_in(self, object message) except -1:
        """Return whether what has come for a message can be put into it here."""
        return self._called.unchanged() and self._messages.may_come_in(message)

    cdef bint reads_properties(self) except -1:
        """Return whether nobody has replaced what reads properties but us."""
        classes = look_up(self._codec._there, "PROPERTY_CLASSES", None)
        decode = look_up(classes, 60, None) if type(classes) is dict else None
        return stands_for(decode, self._codec.decode_properties) and self._codec.reads_properties()


cdef dict _cells(object function, FastFunction maker):
    """Return the variables that a closure keeps, by name; None if somebody else made it."""
    code = getattr(function, "__code__", None)
    made = getattr(getattr(maker.original, "__code__", None), "co_consts", ())
    if type(function) is not FunctionType or not any([each is code for each in made]):
        return None
    return dict(zip(function.__code__.co_freevars, [cell.cell_contents for cell in function.__closure__]))


cdef class Dispatch:
    """Hands on methods as py-amqp's `on_inbound_method` of connections and `dispatch_method` of channels do.

    A message that is new has no attribute but its properties, so it is not asked for one that it lacks: py-amqp makes
    an exception and its text for that. Connections and channels with other functions than these are left to them.

    Args:
        messages: for the class of messages.
        connection: the module `amqp.connection`.
        channel: the module `amqp.abstract_channel`.
        called: guards the two functions, and what they look up but `loads`.
    """

    cdef Messages _messages
    cdef object _receive
    cdef object _dispatch
    cdef dict _there
    cdef Guards _called

    def __cinit__(self, Messages messages, connection, channel, Guards called):
        self._messages = messages
        self._receive = connection.Connection.on_inbound_method
        self._dispatch = channel.AbstractChannel.dispatch_method
        self._there = vars(channel)
        self._called = called

    cdef bint serves(self, object callback, object connection) except -1:
        """Return whether a handler hands on to nothing but py-amqp's own function for its connection."""
        return type(callback) is MethodType and callback.__func__ is self._receive and callback.__self__ is connection

    cdef object channel(self, object connection, object number):
        """A channel that dispatches methods as py-amqp's do; None if it does not, or if there is none."""
        channels = connection.channels
        if type(channels) is not dict or not self._called.unchanged():
            return None
        channel = look_up(channels, number, None)
        dispatch = None if channel is None else channel.dispatch_method
        if type(dispatch) is not MethodType or dispatch.__func__ is not self._dispatch or channel.is_closing:
            return None
        return channel

    cdef bint take(self, object channel, object signature, bytes octets, object message) except -1:
        """Hand a method to those who wait for it; False, and nothing has changed, if py-amqp should."""
        methods, listeners, pending = channel._METHODS, channel._callbacks, channel._pending
        if type(methods) is not dict or type(listeners) is not dict or type(pending) is not dict:
            return False
        method, loads = look_up(methods, signature, None), look_up(self._there, "loads", None)
        if method is None or loads is None or message is not None and not self._messages.tells_its_encoding():
            return False
        if message is not None and channel.auto_decode:
            self._messages.decode_body(message)
        listener = look_up(listeners, signature, _NOTHING)
        waiting = pending.pop(signature, _NOTHING)
        if listener is _NOTHING and waiting is _NOTHING:
            return True
        values = []
        if method.args:
            values, _ = loads(method.args, octets, 4)
        if method.content:
            values.append(message)
        if listener is not _NOTHING:
            listener(*values)
        if waiting is not _NOTHING and waiting:
            waiting(signature, *values)
        return True


cdef class Handler:
    """The state of one connection's frame handler."""

    cdef Framing _framing
    cdef Dispatch _dispatch  # None where py-amqp's functions do it
    cdef object _connection
    cdef object _callback
    cdef object _expected  # a defaultdict
    cdef dict _partial
    cdef bint _may_read_ahead  # and does not yet

    cdef object take(self, tuple frame):
        """Return the result of py-amqp's function for a frame; or None to leave it to that, with nothing changed."""
        cdef Py_ssize_t kind
        cdef Py_ssize_t wanted
        if PyTuple_GET_SIZE(frame) != 3:
            return None
        kind = index_of(frame[0])
        channel = frame[1]
        octets = frame[2]
        if index_of(channel) < 0 or type(octets) is not bytes:
            return None
        if kind == HEARTBEAT:
            self._count()
            return False
        wanted = index_of(look_up(self._expected, channel, METHOD))
        if kind != wanted:
            return None
        if kind == METHOD:
            return self._take_method(channel, octets)
        message = self._partial.get(channel)
        if message is None or not self._framing.takes_in(message):
            return None
        if kind == HEADER:
            return self._take_header(channel, message, octets)
        if kind == BODY:
            return self._take_body(channel, message, octets)
        return None

    cdef int _count(self) except -1:
        self._connection.bytes_recv += 1
        return 0

    cdef object _take_method(self, object channel, bytes octets):
        cdef Messages messages = self._framing._messages
        cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(octets)
        if PyBytes_GET_SIZE(octets) < 4:
            return None
        signature = (<int>u16(p), <int>u16(p + 2))
        if not self._framing.carries_content(u32(p)):
            self._count()
            self._hand_on(channel, signature, octets, None)
            return True
        if not messages.makes_its_own() or not self._framing._called.unchanged():
            return None
        if self._may_read_ahead and u32(p) == DELIVER:
            self._may_read_ahead = False
            read_ahead(self._connection)
        message = messages.make({})
        messages.set(message, FRAME_METHOD, signature)
        messages.set(message, FRAME_ARGS, octets)
        self._count()
        PyDict_SetItem(self._partial, channel, message)
        PyDict_SetItem(self._expected, channel, HEADER)
        return False

    cdef object _take_header(self, object channel, object message, bytes octets):
        cdef const unsigned char *p = <const unsigned char *>PyBytes_AS_STRING(octets)
        cdef Messages messages = self._framing._messages
        if PyBytes_GET_SIZE(octets) < HEAD or u16(p) != 60 or not self._framing.reads_properties():
            return None
        properties = self._properties(octets)
        if properties is None:
            return None
        self._count()
        messages.set(message, SIZE, u64(p + 4))
        messages.set(message, PROPERTIES, properties)
        if u64(p + 4):
            PyDict_SetItem(self._expected, channel, BODY)
            return False
        messages.set(message, READY, True)
        return self._give(channel, message)

    cdef object _properties(self, bytes octets):
        cdef Codec codec = self._framing._codec
        cdef Reader reader = codec.pool.take()
        try:
            reader.attach(octets)
            reader.aim(HEAD, PyBytes_GET_SIZE(octets), 0)
            return codec.read_properties(reader)
        except Exception:
            return None if codec.tolerant is None else self._tolerated(octets)
        finally:
            codec.pool.give_back(reader)

    cdef object _tolerated(self, bytes octets):
        """The properties as py-amqp reads them, or else a tolerant reader; None if neither can."""
        try:
            return self._framing._codec.decode_properties(octets, HEAD)[0]
        except Exception:
            return None

    cdef object _take_body(self, object channel, object message, bytes octets):
        cdef Messages messages = self._framing._messages
        cdef list chunks = messages.get(message, CHUNKS)
        received = messages.get(message, RECEIVED) + PyBytes_GET_SIZE(octets)
        self._count()
        messages.set(message, RECEIVED, received)
        if received < messages.get(message, SIZE):
            chunks.append(octets)
            return False
        if chunks:
            chunks.append(octets)
            octets = b"".join(chunks)
            chunks.clear()
        messages.set(message, CONTENT, octets)
        messages.set(message, READY, True)
        return self._give(channel, message)

    cdef object _give(self, object channel, object message):
        """Hand a whole message to the connection."""
        cdef Messages messages = self._framing._messages
        PyDict_SetItem(self._expected, channel, METHOD)
        PyDict_DelItem(self._partial, channel)
        self._hand_on(channel, messages.get(message, FRAME_METHOD), messages.get(message, FRAME_ARGS), message)
        return True

    cdef int _hand_on(self, object number, object signature, object octets, object message) except -1:
        channel = None if self._dispatch is None else self._dispatch.channel(self._connection, number)
        if channel is None or not self._dispatch.take(channel, signature, octets, message):
            self._callback(number, signature, octets, message)
        return 0


cdef class Outgoing:
    """The state of one connection's frame writer."""

    cdef Framing _framing
    cdef object _connection
    cdef object _write
    cdef object _lock  # that of py-amqp's function, None in releases without one

    cdef object take(self, object kind, object channel, object signature, object arguments, object content):
        """True if the frames are written; None, and nothing has changed, if py-amqp's function should."""
        octets = None
        if kind is not None and self._framing._called.unchanged():
            octets = self._frames(index_of(kind), channel, signature, arguments, content)
        if octets is None:
            return None
        if self._lock is None:
            self._send(octets)
            return True
        self._lock.acquire()  # `with` makes two methods of it first
        try:
            self._send(octets)
        finally:
            self._lock.release()
        return True

    cdef int _send(self, object octets) except -1:
        """Hand frames to the transport: a view of those that go out at once, or each as bytes."""
        if type(octets) is bytes:
            self._write(PyMemoryView_FromObject(octets))
        else:
            for frame in octets:
                self._write(frame)
        self._connection.bytes_sent += 1
        return 0

    cdef object _frames(
        self, Py_ssize_t kind, object channel, object signature, object arguments, object content
    ):
        """The octets of a method and its content, in a list if they are too many for one write; or None."""
        cdef Py_ssize_t limit = index_of(self._connection.frame_max) - OVERHEAD
        try:
            if kind == HEARTBEAT and arguments is None and content is None:
                return self._method(HEARTBEAT, channel, None, b"")
            if type(arguments) is str and not arguments:
                arguments = b""
            if kind != METHOD or type(signature) is not tuple or type(arguments) is not bytes or limit < 0:
                return None
            if content is None:
                octets = self._method(METHOD, channel, signature, arguments)
                return octets if PyBytes_GET_SIZE(octets) <= limit else None
            if not self._framing._messages.may_go_out(content):
                return None
            return self._with_content(channel, signature, arguments, content, limit)
        except Exception:
            return None

    cdef bytes _method(self, int kind, object channel, object signature, bytes arguments):
        """One frame of a method, or a heartbeat."""
        cdef Writer writer = self._framing._codec.rules.writer()
        self._begin(writer, kind, channel, signature, arguments)
        return writer.finish()

    cdef int _begin(self, Writer writer, int kind, object channel, object signature, bytes arguments) except -1:
        cdef Py_ssize_t size = PyBytes_GET_SIZE(arguments)
        cdef Py_ssize_t at = writer.begin_frame(kind, channel)
        if signature is not None:
            class_id, method_id = signature
            if not 0 <= index_of(class_id) <= 0xFFFF or not 0 <= index_of(method_id) <= 0xFFFF:
                raise ValueError("not the ids of a method")
            writer.ids(class_id, method_id)
        memcpy(writer._grow(size), PyBytes_AS_STRING(arguments), <size_t>size)
        writer.end_frame(at, 0xFFFFFFFF)
        return 0

    cdef object _with_content(
        self, object channel, tuple signature, bytes arguments, object message, Py_ssize_t limit
    ):
        cdef Framing framing = self._framing
        cdef Writer writer = framing._codec.rules.writer()
        cdef bytes body = self._body(message)
        cdef Py_ssize_t method
        self._begin(writer, METHOD, channel, signature, arguments)
        method = writer._size
        self._header(writer, channel, signature[0], message, PyBytes_GET_SIZE(body))
        if writer._size + PyBytes_GET_SIZE(body) + OVERHEAD <= limit:
            return writer.finish_with(BODY, channel, body, limit)
        if not body:
            return None  # releases differ
        head = writer.finish()
        return [head[:method], head[method:], *self._pieces(channel, body, limit)]

    cdef bytes _body(self, object message):
        """The body as octets; what encodes text may be told the message first."""
        body = message.body
        if type(body) is bytes:
            return body
        properties = message.properties
        if type(body) is not str or type(properties) is not dict:
            raise TypeError("no body")
        if properties.setdefault("content_encoding", "utf-8") not in ("utf-8", "UTF-8"):
            raise ValueError("of another encoding")
        return PyUnicode_AsUTF8String(body)

    cdef int _header(
        self, Writer writer, object channel, object class_id, object message, Py_ssize_t size
    ) except -1:
        cdef Framing framing = self._framing
        cdef Py_ssize_t at = writer.begin_frame(HEADER, channel)
        if not framing._codec.writes_properties(message.PROPERTIES) or type(message.properties) is not dict:
            raise TypeError("no properties")
        writer.header_start(class_id, 0, <unsigned long long>size)
        framing._codec.write_properties(writer, message.properties)
        writer.end_frame(at, 0xFFFFFFFF)
        return 0

    cdef list _pieces(self, object channel, bytes body, Py_ssize_t limit):
        """A body in frames of at most `limit` octets of payload."""
        cdef list pieces = []
        cdef Py_ssize_t at = 0
        cdef Writer writer
        while at < PyBytes_GET_SIZE(body):
            writer = self._framing._codec.rules.writer()
            pieces.append(writer.finish_with(BODY, channel, body[at : at + limit], limit))
            at += limit
        return pieces


# -- entries: calls as the interpreter has them

cdef tuple _made_by_stock(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    """py-amqp's own function for a connection, and what that keeps; None in place of this if it got more than two
    arguments, or somebody else made it."""
    cdef Framing framing = <Framing>(<FastFunction>function).state
    stock = call_original(function, arguments, nargsf, names)
    cells = _cells(stock, <FastFunction>function) if names is NULL and count_of(nargsf) == 2 else None
    if cells is None:
        name = "frame_handler" if <FastFunction>function is framing.frame_handler else "frame_writer"
        framing._codec.counts.decline(name)
    return stock, cells


cdef object _make_handler(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    """A function of a connection and a callback for frames coming in."""
    cdef Framing framing = <Framing>(<FastFunction>function).state
    cdef Handler handler
    stock, cells = _made_by_stock(function, arguments, nargsf, names)
    if cells is None:
        return stock
    handler = Handler.__new__(Handler)
    handler._framing = framing
    handler._connection, handler._callback = <object>arguments[0], <object>arguments[1]
    handler._expected = cells["expected_types"]
    handler._partial = cells["partial_messages"]
    handler._may_read_ahead = framing._ahead
    if framing._dispatch is not None and framing._dispatch.serves(handler._callback, handler._connection):
        handler._dispatch = framing._dispatch
    if framing._looks:
        look_at_once(handler._connection)
    return fast_function(stock, _on_frame, handler)


cdef object _make_writer(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    """A function of a connection and its transport for frames going out."""
    cdef Framing framing = <Framing>(<FastFunction>function).state
    cdef Outgoing outgoing
    stock, cells = _made_by_stock(function, arguments, nargsf, names)
    if cells is None:
        return stock
    outgoing = Outgoing.__new__(Outgoing)
    outgoing._framing = framing
    outgoing._connection = <object>arguments[0]
    outgoing._write = (<object>arguments[1]).write
    outgoing._lock = cells.get("buffer_lock")
    return fast_function(stock, _write_frame, outgoing)


cdef object _on_frame(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Handler self = <Handler>(<FastFunction>function).state
    if names is NULL and count_of(nargsf) == 1 and type(<object>arguments[0]) is tuple:
        found = self.take(<tuple>arguments[0])
        if found is not None:
            self._framing._codec.counts.fast += 1
            return found
    self._framing._codec.counts.decline("on_frame")
    return call_original(function, arguments, nargsf, names)


cdef object _write_frame(PyObject *function, PyObject *const *arguments, size_t nargsf, PyObject *names):
    cdef Outgoing self = <Outgoing>(<FastFunction>function).state
    if names is NULL and count_of(nargsf) == 5:
        found = self.take(
            <object>arguments[0], <object>arguments[1], <object>arguments[2], <object>arguments[3],
            <object>arguments[4],
        )
        if found is not None:
            self._framing._codec.counts.fast += 1
            return None
    self._framing._codec.counts.decline("write_frame")
    try:
        return call_original(function, arguments, nargsf, names)
    except EncodeError as error:  # of a table that could not be read; a content has no other
        error.field = "application_headers"
        raise
