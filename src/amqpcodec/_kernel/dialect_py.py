"""One dialect at run time: what decoders and encoders need to know of it. One text for both builds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .._protocol.codes import FRAME_ERROR, NOT_IMPLEMENTED, UNEXPECTED_FRAME
from .._typing import TYPE_CHECKING
from ..profiles import table_profile
from .dispatch_py import Dispatch
from .framing import type_mask
from .slots.constructors_py import describe, give_specs
from .slots.sharing_py import share
from .wire import BODY, HEADER, HEARTBEAT, METHOD

if TYPE_CHECKING:
    from .records_py import Method, Properties
    from .routines_py import Routines

# Frame types that only some dialects have; their payload is opaque.
_OPAQUE_FRAMES = ("frame-oob-method", "frame-oob-header", "frame-oob-body", "frame-trace")


class Dialect:
    """One dialect of the protocol.

    Attributes:
        name: such as ``"rabbitmq-0-9-1"``.
        module: import path of its namespace, such as ``"amqpcodec.rabbitmq"``.
        version: major, minor and revision; the revision is None where the specification has none.
        port: the TCP port registered for it.
        protocol_header: the eight octets a client opens a connection with.
        accepted_headers: every protocol header that peers of this dialect were seen to send.
        profile: its default table profile.
        connection_class: id of the class whose methods belong on channel 0, None without one.
        frame_types: the frame types it knows.
        frame_mask: the same as bits: bit n stands for type n.
        constants: the constants of the specification by name.
        methods: method class by (class id, method id).
        properties: properties class by class id.
    """

    def __init__(
        self,
        *,
        name: str,
        module: str,
        version: tuple[int, int, int | None],
        port: int,
        accepted_headers: tuple[bytes, ...],
        profile: str,
        constants: Mapping[str, int],
        methods: tuple[type[Method], ...],
        properties: tuple[type[Properties], ...],
        facts: object,
        routines: Mapping[str, Routines],
    ) -> None:
        give_specs((*methods, *properties), facts)
        self.name = name
        self.module = module
        self.version = version
        self.port = port
        self.protocol_header = accepted_headers[0]
        self.accepted_headers = accepted_headers
        self.profile = table_profile(profile)
        self.constants = MappingProxyType(dict(constants))
        self.methods = MappingProxyType({(cls.spec.class_id, cls.spec.method_id): cls for cls in methods})
        self.properties = MappingProxyType({cls.spec.class_id: cls for cls in properties})
        connection = [cls.spec.class_id for cls in methods if cls.spec.name.startswith("connection.")]
        self.connection_class = connection[0] if connection else None
        self.method_dispatch = Dispatch({cls.spec.index: cls for cls in methods}, routines)
        self.properties_dispatch = Dispatch({cls.spec.class_id: cls for cls in properties}, routines)
        share([self.method_dispatch, self.properties_dispatch])  # every encoder refers to them at each call
        opaque = {constants[constant] for constant in _OPAQUE_FRAMES if constant in constants}
        self.frame_types = frozenset({METHOD, HEADER, BODY, HEARTBEAT} | opaque)
        self.frame_mask = type_mask(self.frame_types)

    @property
    def unexpected_frame(self) -> int:
        """Reply code for frames out of order: 505, or 501 in the dialects that have no 505."""
        return UNEXPECTED_FRAME if "unexpected-frame" in self.constants else FRAME_ERROR

    @property
    def weight_not_zero(self) -> int:
        """Reply code for a content header with a weight: child contents were part of 0-8 alone."""
        return UNEXPECTED_FRAME if "unexpected-frame" in self.constants else NOT_IMPLEMENTED

    def __repr__(self) -> str:
        return f"<Dialect {self.name}>"


describe([Dialect])

__all__ = ["Dialect"]
