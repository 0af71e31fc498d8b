"""Messages that come back: which ones they are, of all that a channel has on their way."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from .failures import ReturnedError, UncertainReturnError

if TYPE_CHECKING:
    from .publishes import Publish

LEFT_OUT = "BCC"  # the header that RabbitMQ does not return


class Headers:
    """Compares content headers by their octets: values may be read otherwise than they were given.

    Args:
        dialect: its module.
        options: those of the connection.
    """

    def __init__(self, dialect: Any, options: Mapping[str, Any]) -> None:
        given = {name: value for name, value in options.items() if value is not None} | {"frame_max": 0}
        writing = {name: given[name] for name in given.keys() & {"frame_max", "profile", "strict", "limits"}}
        reading = {name: given[name] for name in given.keys() & {"tolerant"}} | writing
        self._encoder = dialect.Encoder(**writing)
        self._decoder = partial(dialect.MessageDecoder, **reading)
        self._method = dialect.Basic.Publish()

    def octets(self, properties: Any) -> tuple[bytes, bytes] | None:
        """Return what stands for properties, and for what RabbitMQ would return of them.

        None if they cannot be written: the program has changed them since they were.
        """
        try:
            [message] = self._decoder().feed(self._octets(properties))
        except Exception:  # whatever a value raises
            return None
        read = message.properties
        if type(read.headers) is dict:
            read.headers = dict(sorted(read.headers.items()))  # RabbitMQ 4 returns them in another order
        whole = self._octets(read)
        if not read.headers or LEFT_OUT not in read.headers:
            return whole, whole
        del read.headers[LEFT_OUT]
        return whole, self._octets(read)

    def _octets(self, properties: Any) -> bytes:
        return self._encoder.encode_message(1, self._method, properties, b"")  # type: ignore[no-any-return]


class Alike:
    """Messages that look the same.

    Attributes:
        members: in order, by sequence number.
        parts: those of them that look the same more closely.
        sorted_to: the number up to which members are in the parts.
        doubt: the last basic.return that may be about any of the members up to `doubtful_to`.
    """

    __slots__ = ("_key", "_parent", "doubt", "doubtful_to", "members", "parts", "sorted_to")

    def __init__(self, parent: Alike | None = None, key: Hashable = None) -> None:
        self._parent = parent
        self._key = key
        self.members: OrderedDict[int, Publish] = OrderedDict()
        self.parts: dict[Hashable, Alike] = {}
        self.sorted_to = 0
        self.doubt: Any = None
        self.doubtful_to = 0

    def add(self, number: int, publish: Publish, key: Hashable) -> Alike:
        """Add a message to the part of a key, and return that."""
        part = self.parts.get(key)
        if part is None:
            part = self.parts[key] = Alike(self, key)
        part.members[number] = publish
        return part

    def remove(self, number: int) -> None:
        """Remove a message from here, and from all that this is a part of."""
        node: Alike | None = self
        while node is not None:
            parent = node._parent
            node.members.pop(number, None)
            if not node.members and parent is not None:
                del parent.parts[node._key]
            node = parent

    def doubt_about(self, number: int) -> Any:
        """Return the basic.return that may be about a message here; None if there is none."""
        node: Alike | None = self
        while node is not None and number > node.doubtful_to:
            node = node._parent
        return None if node is None else node.doubt


class Returns:
    """Tells which message a return is about. It takes no longer if there are many on their way.

    RabbitMQ returns messages in the order of publishing, each before the confirm of its own. So it is the
    oldest message that is equal but for the header BCC; or else any with this exchange, routing key and body.
    If several are, and they are not equal to each other, it is not known which.

    Args:
        headers: compares what is returned with what was published.
    """

    __slots__ = ("_all", "_headers", "_last", "_places")

    def __init__(self, headers: Headers) -> None:
        self._headers = headers
        self._all = Alike()  # its parts are by exchange, routing key and body
        self._places: dict[int, Alike] = {}  # the smallest part that a message is in
        self._last = 0  # the number up to which messages are known

    def know(self, sent: dict[int, Publish]) -> None:
        """Take the messages written since the last return, of all that are on their way, in order."""
        for number in _after(self._last, sent):
            publish = sent[number]
            method = publish.method
            if method.mandatory:
                key = (method.exchange, method.routing_key, publish.body)
                self._places[number] = self._all.add(number, publish, key)
            self._last = number

    def returned(self, method: Any, properties: Any, body: bytes) -> bool:
        """Take a return; return whether it is about a message that is known."""
        alike = self._all.parts.get((method.exchange, method.routing_key, body))
        if alike is None:
            return False
        if len(alike.members) > 1:
            alike = self._nearest(alike, properties)
        while len(alike.parts) == 1:
            [alike] = alike.parts.values()
        if alike.parts:
            alike.doubt, alike.doubtful_to = method, self._last
        else:
            number, publish = next(iter(alike.members.items()))
            publish.returned = ReturnedError(*_arguments(method))
            doubt = alike.doubt_about(number)
            if (
                doubt is not None
            ):  # a return before was about this one or another: now it is about any of these
                alike.doubt, alike.doubtful_to = doubt, self._last
            self._places.pop(number)
            alike.remove(number)
        return True

    def _nearest(self, alike: Alike, properties: Any) -> Alike:
        """Return those of several messages whose properties are those of a return; else all of them."""
        self._sort(alike)
        octets = self._headers.octets(properties)
        if octets is None:
            return alike
        return alike.parts.get(octets[1]) or alike

    def _sort(self, alike: Alike) -> None:
        """Tell messages apart by their headers: later than all else, since it takes a while."""
        for number in _after(alike.sorted_to, alike.members):
            publish = alike.members[number]
            octets = self._headers.octets(publish.properties)
            whole, returned = octets or (None, None)
            self._places[number] = alike.add(number, publish, returned).add(number, publish, whole)
            alike.sorted_to = number

    def settled(self, number: int) -> UncertainReturnError | None:
        """Forget a message that the broker has confirmed; return the error where it may have come back."""
        place = self._places.pop(number, None)
        if place is None:
            return None
        doubt = place.doubt_about(number)
        place.remove(number)
        return None if doubt is None else UncertainReturnError(*_arguments(doubt))


def _arguments(method: Any) -> tuple[int, str, str, str]:
    return method.reply_code, method.reply_text, method.exchange, method.routing_key


def _after(number: int, numbered: dict[int, Publish]) -> list[int]:
    """Return the numbers after one, in order, and look at no others."""
    found = []
    for each in reversed(numbered):
        if each <= number:
            break
        found.append(each)
    return found[::-1]


__all__ = ["Headers", "Returns"]
