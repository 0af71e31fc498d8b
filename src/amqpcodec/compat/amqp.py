"""The library py-amqp as it is, accelerated: importing this installs; its names are those of `amqp`."""

from __future__ import annotations

from ._facade import hand_out

__getattr__ = hand_out("amqp")
