"""A message through each library, by its own functions, wherever a next release may have moved them."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

NEW = "_new"  # behind the names that a simulated release has changed


def module(path: str) -> Any:
    """A module of a library, under its name or the new one."""
    try:
        return import_module(path)
    except ModuleNotFoundError:
        return import_module(path + NEW)


def named(owner: Any, name: str) -> Any:
    """An attribute, under its name or the new one."""
    return getattr(owner, name) if hasattr(owner, name) else getattr(owner, name + NEW)


def send(library: str) -> list[str]:
    """Write and read a method, properties and a body; the octets and what they are read as, in words."""
    return {"pamqp": _pamqp, "pika": _pika, "amqp": _amqp}[library]()


def _pamqp() -> list[str]:
    frame, commands = import_module("pamqp.frame"), import_module("pamqp.commands")
    properties = commands.Basic.Properties(
        content_type="text/plain", headers={"a": 1, "b": "c"}, delivery_mode=1
    )
    header = named(module("pamqp.header"), "ContentHeader")(0, 4, properties)
    body = named(module("pamqp.body"), "ContentBody")(b"body")
    found = []
    for each in (commands.Basic.Publish(routing_key="key"), named(commands.Basic, "Ack")(7), header, body):
        octets = frame.marshal(each, 1)
        _, channel, read = frame.unmarshal(octets)
        found += [octets.hex(), f"{channel} {_shown(read)} {_shown(getattr(read, 'properties', None))}"]
    return found


def _shown(value: Any) -> str:
    names = getattr(type(value), "__slots__", ()) or sorted(getattr(value, "__dict__", ()))
    return str([f"{name}={getattr(value, name)!r}" for name in names if name != "properties"])


def _pika() -> list[str]:
    frame, spec = import_module("pika.frame"), import_module("pika.spec")
    for name in ("pika.callback", "pika.connection", "pika.adapters.utils.io_services_utils"):
        module(name)
    properties = spec.BasicProperties(content_type="text/plain", headers={"a": 1, "b": "c"}, delivery_mode=1)
    deliver = named(spec.Basic, "Deliver")("tag", 7, False, "exchange", "key")
    found = []
    method, header = frame.Method(1, deliver), frame.Header(1, 4, properties)
    for each in (method, header, named(frame, "Body")(1, b"body"), frame.Heartbeat()):
        octets = each.marshal()
        size, read = frame.decode_frame(octets)
        found += [octets.hex(), f"{size} {[(k, str(v).replace(NEW, '')) for k, v in vars(read).items()]}"]
    return found


def _amqp() -> list[str]:
    import_module("amqp.connection")
    serialization, framing = import_module("amqp.serialization"), module("amqp.method_framing")
    message = import_module("amqp.basic_message").Message("body", content_type="text/plain", delivery_mode=1)
    connection = SimpleNamespace(frame_max=131072, bytes_recv=0, bytes_sent=0)
    octets: list[bytes] = []
    transport = SimpleNamespace(write=lambda data: octets.append(bytes(data)))
    arguments = serialization.dumps("Bssb", [0, "exchange", "key", False])
    named(framing, "frame_writer")(connection, transport)(1, 1, (60, 40), arguments, message)
    taken: list[str] = []

    def take(channel: int, method: Any, buffer: bytes, content: Any) -> None:
        taken.append(
            f"{channel} {method} {bytes(buffer).hex()} {content.body!r} {sorted(content.properties.items())}"
        )

    handle = framing.frame_handler(connection, take)
    handle(
        (1, 1, bytes.fromhex("003c003c") + serialization.dumps("sLbss", ["tag", 7, False, "exchange", "key"]))
    )
    handle((2, 1, bytes.fromhex("003c0000") + (4).to_bytes(8, "big") + message._serialize_properties()))
    handle((3, 1, b"body"))
    read = serialization.loads("Bssb", arguments, 0)
    return [b"".join(octets).hex(), str(read), *taken]
