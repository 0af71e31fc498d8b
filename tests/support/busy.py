"""A seeded capture of everything that statistics are about, and those statistics by way of frame objects."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from amqpcodec import capture
from amqpcodec import rabbitmq as amqp
from support import make_capture as make

CLIENT, SERVER = make.CLIENT, make.SERVER
EXCHANGES = ("orders", "", "</script><script>alert(1)</script>", "trade\x1b[31m")


def busy(seed: int, bursts: int = 120) -> make.Truth:
    """Connections whose channels confirm, consume, get, work in transactions, and are closed by errors."""
    rng = random.Random(seed)
    truth = make.Truth()
    talks = []
    for number in range(3):
        talk = make.Talk(truth, number, (rng.getrandbits(32), rng.getrandbits(32)))
        talk.open()
        make.open_channel(talk)
        talk.send(CLIENT, _method(0, amqp.Connection.Open(virtual_host=f"/v{number % 2}")))
        talks.append(_Talker(talk, rng))
    for _ in range(bursts):
        rng.choice(talks).step()
    for talker in talks[1:]:
        talker.talk.send(CLIENT, _method(0, amqp.Connection.Close(reply_code=200, reply_text="bye")))
        talker.talk.send(SERVER, _method(0, amqp.Connection.CloseOk()))
        talker.talk.close()
    return truth


def _method(channel: int, method: Any) -> bytes:
    octets: bytes = amqp.encode_method(channel, method)
    return octets


def _message(channel: int, method: Any, body: bytes) -> list[bytes]:
    octets = amqp.encode_message(channel, method, amqp.BasicProperties(app_id="busy"), body, frame_max=4096)
    return make.split(octets)


class _Talker:
    """Both ends of a connection with one channel of each sort."""

    def __init__(self, talk: make.Talk, rng: random.Random) -> None:
        self.talk, self.rng = talk, rng
        self.published, self.confirmed = 0, 0
        self.delivered: list[int] = []
        self.tag = 0
        self.failed = 0
        send = talk.send
        send(CLIENT, _method(2, amqp.Channel.Open()), _method(2, amqp.Confirm.Select()))
        send(SERVER, _method(2, amqp.Channel.OpenOk()), _method(2, amqp.Confirm.SelectOk()))
        for channel, queue, no_ack in ((3, "slow", False), (4, "fast", True)):
            send(CLIENT, _method(channel, amqp.Channel.Open()))
            send(SERVER, _method(channel, amqp.Channel.OpenOk()))
            consume = amqp.Basic.Consume(queue=queue, no_ack=no_ack)
            send(CLIENT, _method(channel, consume))
            send(SERVER, _method(channel, amqp.Basic.ConsumeOk(consumer_tag=f"c{channel}")))
        send(CLIENT, _method(5, amqp.Channel.Open()), _method(5, amqp.Tx.Select()))
        send(CLIENT, _method(5, amqp.Basic.Consume(queue="tx", consumer_tag="t", no_wait=True)))

    def step(self) -> None:
        self.rng.choice(
            (self.publish, self.publish, self.confirm, self.deliver, self.acknowledge, self.get, self.fast,
             self.transact, self.unroutable, self.fail)
        )()  # fmt: skip

    def _body(self) -> bytes:
        return self.rng.randbytes(self.rng.choice((0, 10, 300, 5000)))

    def publish(self) -> None:
        frames: list[bytes] = []
        for _ in range(self.rng.randrange(1, 5)):
            self.published += 1
            exchange = self.rng.choice(EXCHANGES)
            method = amqp.Basic.Publish(exchange=exchange, routing_key=f"k{self.rng.randrange(4)}")
            frames += _message(2, method, self._body())
        self.talk.send(CLIENT, *frames)

    def confirm(self) -> None:
        if self.confirmed < self.published:
            self.confirmed = self.rng.randrange(self.confirmed, self.published) + 1
            make_answer = self.rng.choice((amqp.Basic.Ack, amqp.Basic.Ack, amqp.Basic.Nack))
            self.talk.send(SERVER, _method(2, make_answer(delivery_tag=self.confirmed, multiple=True)))

    def deliver(self) -> None:
        frames: list[bytes] = []
        for _ in range(self.rng.randrange(1, 4)):
            self.tag += 1
            self.delivered.append(self.tag)
            method = amqp.Basic.Deliver(consumer_tag="c3", delivery_tag=self.tag, exchange="orders")
            frames += _message(3, method, self._body())
        self.talk.send(SERVER, *frames)

    def acknowledge(self) -> None:
        if not self.delivered:
            return
        tag = self.rng.choice(self.delivered)
        method, *upto = self.rng.choice(
            ((amqp.Basic.Ack, True), (amqp.Basic.Ack, False), (amqp.Basic.Nack, False), (amqp.Basic.Reject,))
        )
        answer = method(tag, *upto)
        multiple = bool(upto and upto[0])
        self.delivered = [each for each in self.delivered if each > tag or (not multiple and each != tag)]
        self.talk.send(CLIENT, _method(3, answer))

    def get(self) -> None:
        queue = self.rng.choice(("slow", "other"))
        self.talk.send(CLIENT, _method(3, amqp.Basic.Get(queue=queue, no_ack=queue == "other")))
        if self.rng.random() < 0.3:
            self.talk.send(SERVER, _method(3, amqp.Basic.GetEmpty()))
            return
        self.tag += 1
        if queue == "slow":
            self.delivered.append(self.tag)
        self.talk.send(SERVER, *_message(3, amqp.Basic.GetOk(delivery_tag=self.tag), self._body()))

    def fast(self) -> None:
        method = amqp.Basic.Deliver(consumer_tag="c4", delivery_tag=1, exchange="orders")
        self.talk.send(SERVER, *_message(4, method, self._body()))

    def transact(self) -> None:
        method = amqp.Basic.Deliver(consumer_tag="t", delivery_tag=1, exchange="orders")
        self.talk.send(SERVER, *_message(5, method, self._body()))
        self.talk.send(CLIENT, _method(5, amqp.Basic.Ack(1)), _method(5, amqp.Tx.Commit()))

    def unroutable(self) -> None:
        method = amqp.Basic.Return(reply_code=312, reply_text="NO_ROUTE", exchange="orders", routing_key="x")
        self.talk.send(SERVER, *_message(2, method, b"back"))

    def fail(self) -> None:
        self.failed += 1
        number = 10 + self.failed
        self.talk.send(CLIENT, _method(number, amqp.Channel.Open()))
        self.talk.send(CLIENT, _method(number, amqp.Queue.Declare(queue="nope", passive=True)))
        close = amqp.Channel.Close(reply_code=404, reply_text="NOT_FOUND", class_id=50, method_id=10)
        self.talk.send(SERVER, _method(number, close))
        self.talk.send(CLIENT, _method(number, amqp.Channel.CloseOk()))


class Known:
    """What frame objects say of a capture, by the plainest means."""

    def __init__(self, path: Path) -> None:
        self.kinds: Counter[str] = Counter()
        self.octets: Counter[str] = Counter()
        self.exchanges: Counter[str] = Counter()
        self.exchange_octets: Counter[str] = Counter()
        self.queues: Counter[str] = Counter()
        self.confirms: list[int] = []
        self.acks: list[int] = []
        self.closes: Counter[tuple[str, int]] = Counter()
        self.returned = 0
        self.octets_seen = 0
        self._states: dict[Any, dict[str, Any]] = defaultdict(
            lambda: {"next": 0, "published": {}, "delivered": {}, "tx": False, "asked": [], "consumers": {}}
        )
        self._content: dict[Any, Any] = {}
        for item in capture.read_frames(path):
            assert isinstance(item, capture.CapturedFrame)
            self.octets_seen += len(item.octets)
            self._take(item)

    def _take(self, item: capture.CapturedFrame) -> None:
        payload = item.frame.payload
        location = item.connection.number, item.frame.channel, item.direction
        if item.frame.type == 1:
            self._method(item, payload, self._states[location[:2]])
            if payload.spec.content:
                self._content[location] = payload
        elif item.frame.type == 2:
            method = self._content[location]
            kind = method.spec.name.partition(".")[2]
            self.kinds[kind] += 1
            self.octets[kind] += payload.body_size
            if kind != "return":
                self.exchanges[method.exchange] += 1
                self.exchange_octets[method.exchange] += payload.body_size

    def _method(self, item: capture.CapturedFrame, method: Any, state: dict[str, Any]) -> None:
        now = item.time_ns
        match method.spec.name:
            case "confirm.select":
                state["next"] = 1
            case "tx.select":
                state["tx"] = True
            case "basic.publish" if state["next"]:
                state["published"][state["next"]] = now
                state["next"] += 1
            case "basic.consume" | "basic.get":
                state["asked"].append((method.queue, method.no_ack))
                if getattr(method, "no_wait", False):
                    state["consumers"][method.consumer_tag] = state["asked"].pop(0)
            case "basic.consume-ok":
                state["consumers"][method.consumer_tag] = state["asked"].pop(0)
            case "basic.get-empty":
                state["asked"].pop(0)
            case "basic.deliver":
                self._delivered(method, now, state, *state["consumers"].get(method.consumer_tag, ("?", True)))
            case "basic.get-ok":
                self._delivered(method, now, state, *state["asked"].pop(0))
            case "basic.ack" | "basic.nack" | "basic.reject":
                waiting, found = (
                    (state["published"], self.confirms) if item.direction else (state["delivered"], self.acks)
                )
                tag, upto = method.delivery_tag, getattr(method, "multiple", False)
                for each in [each for each in waiting if each == tag or (upto and (each < tag or not tag))]:
                    found.append(now - waiting.pop(each))
            case "channel.close" | "connection.close":
                self.closes[method.spec.name.partition(".")[0], method.reply_code] += 1
            case "basic.return":
                self.returned += 1

    def _delivered(self, method: Any, now: Any, state: dict[str, Any], queue: str, no_ack: bool) -> None:
        self.queues[queue] += 1
        if not no_ack and not state["tx"]:
            state["delivered"][method.delivery_tag] = now
