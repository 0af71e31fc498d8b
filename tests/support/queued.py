"""Captures of queues, made from a seed by a small broker that knows which publish each delivery is of."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from amqpcodec import rabbitmq as amqp

from . import make_capture as make
from .make_capture import CLIENT, SERVER
from .troubled import Talk

Place = tuple[int, int]  # a connection and an offset


class Post:
    """A message in a queue: where it was published, and what is in it."""

    def __init__(self, place: Place, route: tuple[str, str], body: bytes, properties: Any) -> None:
        self.place, self.route, self.body, self.properties = place, route, body, properties
        self.redelivered = False


class Peer(Talk):
    """A client of the broker, with one channel."""

    def __init__(self, world: World) -> None:
        self.world, self.tag, self.queue = world, 0, ""
        self.unsettled: dict[int, Post] = {}
        super().__init__(world.truth, len(world.peers))
        world.peers.append(self)
        self.opened()

    def send(self, side: int, *frames: bytes) -> None:
        """Send frames after all that the others have sent."""
        self.time_ns = max(self.time_ns, self.world.now)
        super().send(side, *frames)
        self.world.now = self.time_ns

    def declare(self, queue: str, messages: int = 0, **arguments: Any) -> None:
        known = self.world.queues.setdefault(queue, deque())
        self.client(amqp.Queue.Declare(queue=queue, **arguments))
        count = sum(queue == each.queue for each in self.world.peers)
        self.server(amqp.Queue.DeclareOk(queue, messages or len(known), count))

    def bind(self, queue: str, exchange: str, key: str, kind: str = "topic") -> None:
        self.client(amqp.Exchange.Declare(exchange=exchange, type=kind))
        self.server(amqp.Exchange.DeclareOk())
        self.client(amqp.Queue.Bind(queue=queue, exchange=exchange, routing_key=key))
        self.server(amqp.Queue.BindOk())

    def publish(self, queues: list[str], exchange: str, key: str, body: bytes, **properties: Any) -> Place:
        """Publish; the test says which queues the message is put in."""
        content = amqp.BasicProperties(**properties)
        place = self.number, self.sent[CLIENT]
        self.world.times[place] = max(self.time_ns, self.world.now) + 100_000
        method = amqp.Basic.Publish(exchange=exchange, routing_key=key)
        self.send(CLIENT, *make.split(amqp.encode_message(1, method, content, body, frame_max=4096)))
        for queue in queues:
            self.world.queues[queue].append(Post(place, (exchange, key), body, content))
        return place

    def consume(self, queue: str, **arguments: Any) -> None:
        self.queue = queue
        self.client(amqp.Basic.Consume(queue=queue, consumer_tag="c", **arguments))
        self.server(amqp.Basic.ConsumeOk(consumer_tag="c"))

    def deliver(self) -> bool:
        """Deliver the next message of its queue; False if there is none."""
        posts = self.world.queues[self.queue]
        if not posts:
            return False
        self.tag += 1
        post = self.unsettled[self.tag] = posts.popleft()
        method = amqp.Basic.Deliver("c", self.tag, post.redelivered, *post.route)
        self._carry(post, method)
        return True

    def get(self, queue: str) -> None:
        self.client(amqp.Basic.Get(queue=queue))
        posts = self.world.queues[queue]
        if not posts:
            self.server(amqp.Basic.GetEmpty())
            return
        self.tag += 1
        post = self.unsettled[self.tag] = posts.popleft()
        self._carry(post, amqp.Basic.GetOk(self.tag, post.redelivered, *post.route, len(posts)))

    def settle(self, tag: int, requeue: bool = False) -> None:
        post = self.unsettled.pop(tag)
        if not requeue:
            self.client(amqp.Basic.Ack(tag))
            return
        post.redelivered = True
        self.world.queues[self.queue].appendleft(post)
        self.client(amqp.Basic.Nack(tag, requeue=True))

    def _carry(self, post: Post, method: Any) -> None:
        self.world.of[self.number, self.sent[SERVER]] = post.place
        octets = amqp.encode_message(1, method, post.properties, post.body, frame_max=256)
        self.send(SERVER, *make.split(octets))


class World:
    """What is recorded, and the truth: of each delivery the publish."""

    def __init__(self) -> None:
        self.truth = make.Truth()
        self.peers: list[Peer] = []
        self.queues: dict[str, deque[Post]] = {}
        self.of: dict[Place, Place] = {}
        self.times: dict[Place, int] = {}
        self.now = make.START_NS

    def capture(self, without: int | None = None) -> bytes:
        """Return the recording, perhaps without one of its connections."""
        port = None if without is None else (40000 + without).to_bytes(2, "big")
        packets = [each for each in self.truth.packets if port is None or port not in each.octets[34:38]]
        return make.pcap(sorted(packets, key=lambda packet: packet.time_ns), nanos=True)


def shop(seed: int, rounds: int = 60, alike: bool = True) -> World:
    """A few publishers, queues and consumers; messages with ids, of their own contents, or perhaps alike."""
    rng, world = random.Random(seed), World()
    queues = [f"q{number}" for number in range(rng.randint(1, 4))]
    publishers = [Peer(world) for _ in range(rng.randint(1, 3))]
    consumers = [Peer(world) for _ in range(rng.randint(1, 4))]
    for queue in queues:
        owner = rng.choice(consumers)
        owner.declare(queue)
        owner.bind(queue, "topics", rng.choice(["a.*", "#", "b.#", f"{queue}.x"]))
    bound = _bindings(world)
    for consumer in consumers:
        consumer.consume(rng.choice(queues))
    for _ in range(rounds):
        publisher = rng.choice(publishers)
        body = rng.choice([*[b"same", b"same" * 100] * alike, rng.randbytes(8)])
        properties = rng.choice(
            [{}, {}, {"message_id": rng.randbytes(4).hex()}, {"correlation_id": rng.choice("ab")}]
        )
        if rng.random() < 0.6:
            queue = rng.choice(queues)
            publisher.publish([queue], "", queue, body, **properties)
        else:
            key = rng.choice(["a.x", "b", "b.y.z", "q0.x"])
            publisher.publish(bound(key), "topics", key, body, **properties)
        while rng.random() < 0.5:
            consumer = rng.choice(consumers)
            if not consumer.deliver() or rng.random() < 0.5:
                break
        for consumer in consumers:
            if consumer.unsettled and rng.random() < 0.4:
                consumer.settle(next(iter(consumer.unsettled)), requeue=rng.random() < 0.2)
    return world


def _bindings(world: World) -> Any:
    """What the bindings of `shop` route a key to, by the patterns that are in its frames."""
    bound = {}
    for _, _, _, octets in sorted(world.truth.frames, key=str):
        if octets[7:11] == b"\0\x32\0\x14":
            method = next(amqp.FrameDecoder().feed(octets)).payload
            bound[method.queue] = method.routing_key

    def route(key: str) -> list[str]:
        return [queue for queue, pattern in bound.items() if _fits(pattern, key)]

    return route


def _fits(pattern: str, key: str) -> bool:
    """The patterns above alone: one `#` at the end, or `*` for one word."""
    if pattern.endswith("#"):
        lead = pattern[:-1].rstrip(".")
        return not lead or key == lead or key.startswith(lead + ".")
    return pattern == key or (pattern == "a.*" and key.startswith("a.") and key.count(".") == 1)
