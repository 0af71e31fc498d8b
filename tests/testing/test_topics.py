"""Topic exchanges find the bindings that match, however many there are."""

from __future__ import annotations

import random
from typing import Any

import pytest
from probes import bind, queue
from probing import publish
from talking import talk

from amqpcodec.testing import Broker
from amqpcodec.testing.exchanges import Binding, Exchange
from amqpcodec.testing.topics import Topics

WORDS = ["a", "b", "", "*", "#"]


def matches(pattern: list[str], words: list[str]) -> bool:
    """Return whether words are as a pattern wants them: as the specification says it, word by word."""
    if not pattern:
        return not words
    if pattern[0] == "#":
        return matches(pattern[1:], words) or (bool(words) and matches(pattern, words[1:]))
    return bool(words) and pattern[0] in ("*", words[0]) and matches(pattern[1:], words[1:])


def key(chance: random.Random) -> str:
    """Return a pattern or a routing key of a few words."""
    return ".".join(chance.choices(WORDS, k=chance.randrange(6)))


def split(key: str) -> list[str]:
    return key.split(".") if key else []


def bindings(patterns: list[str]) -> list[Binding]:
    """Return bindings of one exchange."""
    exchange = Exchange("e", "topic")
    return [Binding(exchange, exchange, pattern, {"": number}) for number, pattern in enumerate(patterns)]


@pytest.mark.parametrize("seed", range(20))
def test_those_match_that_do_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    topics = Topics()
    bound = bindings([key(chance) for _ in range(200)])
    for binding in bound:
        topics.add(binding)
    while bound:
        for _ in range(20):
            sent = key(chance)
            found = topics.matching([sent])
            wanted = [each for each in bound if matches(split(each.routing_key), split(sent))]
            assert sorted(each.routing_key for each in found) == sorted(each.routing_key for each in wanted)
            assert set(found) == set(wanted)
        for _ in range(50):
            topics.remove(bound.pop(chance.randrange(len(bound))))
    assert topics._following == {}  # nothing stays of what is unbound


def visited(count: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many places a message looks at, of so many bindings."""
    topics = Topics()
    for binding in bindings([f"orders.{number}.*.#" for number in range(count)]):
        topics.add(binding)
    looked = 0
    reach = Topics._reach

    def counted(self: Topics, reached: Any) -> Any:
        nonlocal looked
        looked += 1
        return reach(self, reached)

    with monkeypatch.context() as patch:
        patch.setattr(Topics, "_reach", counted)
        assert len(topics.matching(["orders.7.created.now"])) == 1
    return looked


def test_a_thousand_bindings_are_no_more_work_than_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    assert visited(1000, monkeypatch) == visited(10, monkeypatch)


def test_a_binding_is_found_once_by_many_keys() -> None:
    topics = Topics()
    bound = bindings(["#", "#.1", "*.2"])
    for binding in bound:
        topics.add(binding)
    assert topics.matching(f"k.{number}" for number in range(1000)) == bound


async def test_words_of_patterns_count_and_are_given_back(broker: Broker) -> None:
    async with talk(broker) as client:
        await client.say(queue())
        before = broker.store.objects
        bound = [bind(queue="q", exchange="amq.topic", routing_key=key) for key in ("a.b.#", "a.*", "")]
        await client.say(*bound, publish("amq.topic", "a.b"), publish("amq.topic", "b"))
        assert broker.store.objects == before + 3 + 5
        broker.assert_queue("q", ready=1)
        broker.reset()
    assert broker.store.objects == 0
