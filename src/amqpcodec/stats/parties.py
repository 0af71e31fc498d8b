"""Queues, consumers and publishers: how long answers take them, and how much waits for them at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from .durations import Durations
from .summary import Party

MOST_PARTIES = 1000
_SECOND = 1_000_000_000


class Share(Durations):
    """The messages of one who takes part, their answers, and what waits at once.

    Attributes:
        prefetch: how many the broker may have waiting at its consumer, 0 for any number; None if nobody said.
        waits: of a queue, how long messages waited from publish to delivery.
        sizes: of a publisher, octets of bodies.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits, self.sizes = Durations(), Durations()
        self.prefetch: int | None = None
        self._first: int | None = None
        self._last: int | None = None
        self._waiting = self._most_waiting = 0
        self._idle_ns = self._pause_ns = 0
        self._free_since: int | None = None
        self._quiet_since: int | None = None

    def see(self, time_ns: int) -> None:
        """A message came at a time."""
        if self._first is None or self._last is None:
            self._first = self._last = self._quiet_since = time_ns
        elif time_ns > self._last:
            if self._quiet_since is not None and time_ns - self._quiet_since > self._pause_ns:
                self._pause_ns = time_ns - self._quiet_since
            self._last = self._quiet_since = time_ns
        elif time_ns < self._first:
            self._first = time_ns

    def wait(self, time_ns: int) -> None:
        """A message came that is to be answered."""
        self.see(time_ns)
        if self._free_since is not None:
            self._idle_ns += max(time_ns - self._free_since, 0)
            self._free_since = None
        self._waiting += 1
        if self._waiting > self._most_waiting:
            self._most_waiting = self._waiting

    def settle(self, time_ns: int | None) -> None:
        """One of the messages that wait does no more; None if it still did when the recording ended."""
        self._waiting -= 1
        if not self._waiting and self._quiet_since is not None:  # it has not ended
            self._free_since = time_ns

    def stop(self, time_ns: int | None) -> None:
        """No more messages come, unless it begins again; None if it is not known since when."""
        if self._last is not None and time_ns is not None and time_ns < self._last:
            return  # it has begun again already
        free, quiet = self._free_since, self._quiet_since
        self._free_since = self._quiet_since = None
        if time_ns is not None:
            self._idle_ns += 0 if free is None else max(time_ns - free, 0)
            self._pause_ns = max(self._pause_ns, 0 if quiet is None else time_ns - quiet)

    def party(self, keys: dict[str, Any], name: str | None) -> Party:
        """Return the counts so far of who is known by these keys, and what it calls itself."""
        span = 0 if self._first is None or self._last is None else self._last - self._first
        percentiles, waits, sizes = (each.percentiles() for each in (self, self.waits, self.sizes))
        return Party(
            keys=keys,
            name=name,
            messages=self.messages,
            per_second=self.messages * _SECOND / span if span else None,
            redelivered=self.redelivered,
            count=self.count,
            refused=self.negative,
            unanswered=self.unanswered,
            waiting=self.waiting,
            unfollowed=self.unfollowed,
            most_waiting=self._most_waiting,
            prefetch=self.prefetch,
            idle_ns=self._idle_ns if self._most_waiting else None,
            pause_ns=self._pause_ns,
            mean_ns=self.mean,
            p50_ns=percentiles.get("p50"),
            p99_ns=percentiles.get("p99"),
            most_ns=self.most,
            wait_p50_ns=waits.get("p50"),
            wait_p99_ns=waits.get("p99"),
            size_p50=sizes.get("p50"),
            size_p99=sizes.get("p99"),
            size_most=self.sizes.most,
            first_ns=self._first,
            last_ns=self._last,
        )


class Parties:
    """Shares by who took part: of the first 1,000, and of all later ones together.

    Args:
        keys: names of the parts of a key; a channel comes behind its client.
    """

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys
        self._by_key: dict[tuple[Any, ...], Share] = {}
        self._others = Share()
        self._client = keys.index("client") if "client" in keys else None
        self._by_client: dict[str | None, dict[int, list[tuple[Any, Share]]]] = {}
        self._names: dict[str | None, str | None] = {}

    def of(self, key: tuple[Any, ...]) -> Share:
        """Return the share of a key."""
        found = self._by_key.get(key)
        if found is None:
            if len(self._by_key) >= MOST_PARTIES:
                return self._others
            found = self._by_key[key] = Share()
            if self._client is not None:
                client, channel = key[self._client : self._client + 2]
                self._by_client.setdefault(client, {}).setdefault(channel, []).append((key[-1], found))
        return found

    def messages(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        """Yield each key and its messages."""
        for key, share in self._by_key.items():
            yield key, share.messages

    def on_channel(self, client: str | None, channel: int) -> Iterable[tuple[Any, Share]]:
        """Return the last part of each key that has this client and channel, and the share."""
        return self._by_client.get(client, {}).get(channel, ())

    def end(self, client: str | None, name: str | None, time_ns: int | None) -> None:
        """Take the end of a client's connection, and what the client calls itself."""
        if client in self._by_client:
            self._names[client] = name
            for shares in self._by_client[client].values():
                for _, share in shares:
                    share.stop(time_ns)

    def name_of(self, client: str | None) -> str | None:
        """Return what a client calls itself, if that is known."""
        return self._names.get(client)

    def largest(self, top: int) -> list[Party]:
        """Return those with the most messages, and all others together, if there are any."""
        ordered = sorted(self._by_key.items(), key=lambda item: (-item[1].messages, str(item[0])))
        shown = [self._party(key, share) for key, share in ordered[:top]]
        left = [share for _, share in ordered[top:]] + [self._others] * (self._others.messages > 0)
        return [*shown, self._sum(left)] if left else shown

    def _party(self, key: tuple[Any, ...], share: Share) -> Party:
        name = None if self._client is None else self.name_of(key[self._client])
        return share.party(dict(zip(self._keys, key, strict=True)), name)

    def _sum(self, shares: list[Share]) -> Party:
        """Return the counts of several together."""
        rest = Share()
        for share in shares:
            rest.add_counts(share)
        return replace(
            rest.party(dict.fromkeys(self._keys), None), count=None, most_waiting=None, pause_ns=None,
            others=len(shares),
        )  # fmt: skip
