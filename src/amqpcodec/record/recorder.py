"""A recorder: connections of a program to a capture, without ever holding up the program."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_address
from itertools import islice
from queue import Empty, SimpleQueue
from time import time_ns
from types import TracebackType
from typing import Any, Unpack

from .._options import takes
from ..capture import Endpoint
from ..capture.writing import LARGE_SEGMENT, Conversation, record
from ..options import RecorderOptions
from .blanking import Blanker
from .files import CaptureFiles

log = logging.getLogger("amqpcodec.record")
_BATCH = 1 << 20  # octets that are written at once
_BESIDE = 200  # octets of memory, and of packets, beside those of a call
_RETRY_SECONDS = 0.5
_CLOSE_SECONDS = 10.0
_TOGETHER = 64  # records of a gap that are made at once
_LOOPBACK = bytes((127, 0, 0, 1))
_MAPPED = bytes(10) + b"\xff\xff"  # an IPv4 address as one of IPv6
_FIRST_PORT = 49152  # of ends that have none


@dataclass
class RecorderStats:
    """Counts of what a recorder has done so far.

    Attributes:
        connections: that were to be recorded.
        recorded: octets that connections carried and that are in the capture, or wait for the disk.
        missing: octets that are not in it, since the disk was full or slow. They are gaps in the capture.
        left_out: octets that are no AMQP, so that nobody knows whether they are login data; gaps as well.
        missing_connections: of which nothing is in it.
        files: written so far.
        error: what the disk has said last; empty if it takes all.
    """

    connections: int = 0
    recorded: int = 0
    missing: int = 0
    left_out: int = 0
    missing_connections: int = 0
    files: int = 0
    error: str = ""


@takes(RecorderOptions)
class Recorder:
    """Records connections to a capture, as if their packets had been recorded.

        with Recorder("trace.pcap") as recorder:
            async with aio.Client(url, record=recorder) as client: ...

    A thread writes the file, and nobody waits for it. What the disk does not take is left out and counted.

    Args:
        path: the file, which is replaced. It is readable for its owner alone.
        options: those of `RecorderOptions`.

    Raises:
        OSError: the file cannot be opened.
        TypeError, ValueError: an option that cannot be.
    """

    def __init__(self, path: str | os.PathLike[str], **options: Unpack[RecorderOptions]) -> None:
        self._queue_bytes = options["queue_bytes"]
        self._server_port = options["server_port"]
        self._blanks = not options["include_credentials"]
        self._files = CaptureFiles(
            os.fspath(path), options["rotate_bytes"], options["rotate_seconds"], options["keep_files"]
        )
        self._batch = min(_BATCH, options["rotate_bytes"] or _BATCH)
        self._queue: SimpleQueue[tuple[bytes, int] | Iterator[bytes] | None] = SimpleQueue()
        self._gap: Iterator[bytes] = iter(())  # records that go on where the last batch has ended
        self._lock = threading.Lock()
        self._queued = 0
        self._is_behind = False
        self._open: set[tuple[Endpoint, Endpoint]] = set()
        self._stats = RecorderStats()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="amqpcodec recorder", daemon=True)
        self._thread.start()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self, client: Any, server: Any) -> Recording:
        """Begin to record a connection.

        Args:
            client, server: its ends, as the sockets of asyncio name them: ``(host, port, ...)``. Anything
                else, such as the path of a Unix socket, is 127.0.0.1 in the capture.
        """
        with self._lock:
            self._stats.connections += 1
            number = self._stats.connections
            ends = self._ends(client, server, number)
            self._open.add(ends)
        return Recording(self, number, *ends, blanks=self._blanks)

    def stats(self) -> RecorderStats:
        """Return what the recorder has done so far."""
        with self._lock:
            return replace(self._stats, files=self._files.count)

    def close(self, timeout: float = _CLOSE_SECONDS) -> None:
        """Write what waits, and close the file. What the disk does not take then counts as missing.

        Args:
            timeout: seconds that a disk may take that does not answer at all.
        """
        if self._ending.is_set():
            return
        self._ending.set()
        self._queue.put(None)
        self._thread.join(timeout)
        if self._thread.is_alive():
            log.error("the disk does not answer: the end of %s is not written", self._files.name)

    def _ends(self, client: Any, server: Any, number: int) -> tuple[Endpoint, Endpoint]:
        ends = _endpoint(client, _FIRST_PORT + number % (2**16 - _FIRST_PORT)), _endpoint(server, 0)
        if len(ends[0].address) != len(ends[1].address):
            ends = _as_version_6(ends[0]), _as_version_6(ends[1])
        first, second = ends[0], Endpoint(ends[1].address, self._server_port)
        while (first, second) in self._open:  # by way of another port of the server
            first = Endpoint(first.address, first.port % 65535 + 1)
        return first, second

    # -- called by recordings

    def _ended(self, ends: tuple[Endpoint, Endpoint]) -> None:
        """Take note that a connection has ended."""
        with self._lock:
            self._open.discard(ends)

    def _has_room(self, size: int) -> bool:
        """Return whether so many octets may wait for the disk as well."""
        return self._queued + size + _BESIDE <= self._queue_bytes and not self._ending.is_set()

    def _put(self, records: bytes, octets: int) -> None:
        """Have records written, which hold so many octets of a connection."""
        with self._lock:
            self._queued += len(records) + _BESIDE
            self._stats.recorded += octets
        self._queue.put((records, octets))

    def _put_gap(self, records: Iterator[bytes]) -> None:
        """Have the records of a gap written, which the thread makes: there may be very many."""
        with self._lock:
            self._queued += _BESIDE
        self._queue.put(records)

    def _miss(self, octets: int, *, connections: int = 0, left_out: int = 0) -> None:
        """Count what is not recorded."""
        with self._lock:
            self._stats.missing += octets
            self._stats.left_out += left_out
            self._stats.missing_connections += connections
            is_new = bool(octets or connections) and not self._is_behind
            self._is_behind = self._is_behind or is_new
        if is_new:
            reason = self._stats.error or "the disk is slower than the traffic"
            log.warning("%s: not all is recorded: %s", self._files.name, reason)

    # -- the thread

    def _run(self) -> None:
        batch = _Batch()
        while not batch.is_last:
            batch = self._next_batch()
            is_written = self._write(b"".join(batch.records))
            self._done(batch, is_written)
            if not is_written:
                self._miss(batch.octets)
        self._files.close()

    def _done(self, batch: _Batch, is_written: bool) -> None:
        """Take note that a batch waits no more. With half of the room free, the disk has caught up."""
        with self._lock:
            self._queued -= batch.queued
            self._stats.recorded -= 0 if is_written else batch.octets
            goes_on = self._is_behind and is_written and self._queued <= self._queue_bytes // 2
            self._is_behind = self._is_behind and not goes_on
            missing = self._stats.missing
        if goes_on:
            log.warning("%s: recording goes on; %d octets are missing so far", self._files.name, missing)

    def _next_batch(self) -> _Batch:
        """Wait for records, and take those that are there."""
        batch = _Batch()
        wait = True
        while batch.size < self._batch:
            if some := b"".join(islice(self._gap, _TOGETHER)):
                batch.add(some)
                continue
            try:
                item = self._queue.get(wait)
            except Empty:
                break
            if item is None:
                batch.is_last = True
                break
            if isinstance(item, tuple):
                batch.add(*item, _BESIDE + len(item[0]))
            else:
                self._gap = item
                batch.add(b"", 0, _BESIDE)
            wait = False
        return batch

    def _write(self, records: bytes) -> bool:
        """Write records, however long it takes; return False where the recorder is closed meanwhile."""
        begun = False
        while True:
            try:
                if not begun:
                    begun = True
                    self._files.begin(records)
                self._files.write()
                self._stats.error = ""
                return True
            except OSError as error:
                if not self._stats.error:
                    log.warning("%s: %s; trying again", self._files.name, error.strerror)
                self._stats.error = error.strerror or str(error)
            if self._ending.wait(_RETRY_SECONDS):
                self._files.give_up()
                return False


class _Batch:
    """Records that are written at once."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.size = self.octets = self.queued = 0
        self.is_last = False

    def add(self, records: bytes, octets: int = 0, queued: int = 0) -> None:
        """Append records, which hold so many octets of a connection, and took so much room in the queue."""
        self.records.append(records)
        self.size += len(records)
        self.octets += octets
        self.queued += queued


class Recording:
    """One connection as a recorder sees it: `Recorder.open` makes it.

    Args:
        recorder: where its packets go.
        number: of the connection.
        client, server: its ends in the capture.
        blanks: whether login data is blanked.
    """

    def __init__(
        self, recorder: Recorder, number: int, client: Endpoint, server: Endpoint, *, blanks: bool
    ) -> None:
        self._recorder = recorder
        self._ends = client, server
        self._number = number
        self._blankers = (Blanker(), Blanker()) if blanks else None
        self._missing = [0, 0]  # octets before the next ones
        self._conversation: Conversation | None = None
        self._records: list[bytes] = []
        self._is_over = False
        self._begin(time_ns())

    def record(self, time_ns: int, octets: bytes) -> None:
        """Take a packet of the conversation."""
        self._records.append(record(time_ns, octets))

    def records(self, records: Iterator[bytes]) -> None:
        """Take the packets of a gap."""
        self._recorder._put_gap(records)

    def data(self, direction: int, octets: bytes | bytearray | memoryview) -> None:
        """Record what one end has sent.

        Args:
            direction: 0 from the client, 1 from the server.
            octets: may be changed afterwards.
        """
        octets = bytes(octets)
        hidden = 0
        if self._blankers is not None:
            octets, hidden = self._blankers[direction].feed(octets)
        now = time_ns()
        if octets:
            if self._recorder._has_room(len(octets)) and self._catch_up(now):
                assert self._conversation is not None  # `_catch_up` has begun it
                self._conversation.send(direction, octets, now)
                self._put(len(octets))
            else:
                self._missing[direction] += len(octets)
                self._recorder._miss(len(octets))
        if hidden:
            self._missing[direction] += hidden
            self._recorder._miss(0, left_out=hidden)

    def finish(self, direction: int) -> None:
        """Record that one end sends no more."""
        now = time_ns()
        if self._catch_up(now) and self._conversation is not None:
            self._conversation.finish(direction, now)
            self._put(0)

    def close(self, reset_by: int | None = None) -> None:
        """Record the end of the connection.

        Args:
            reset_by: the direction of the end that has broken it off; None where both have ended it.
        """
        if self._is_over:
            return
        self._is_over = True
        self._recorder._ended(self._ends)
        now = time_ns()
        if self._catch_up(now) and self._conversation is not None:
            if reset_by is None:
                self._conversation.close(now)
            else:
                self._conversation.reset(reset_by, now)
            self._put(0)
        elif self._conversation is None:
            self._recorder._miss(0, connections=1)

    def _begin(self, now: int) -> bool:
        """Open the connection in the capture; return whether it is."""
        if self._conversation is None and self._recorder._has_room(0):
            self._conversation = Conversation(self, *self._ends, now, self._number, segment=LARGE_SEGMENT)
            self._put(0)
        return self._conversation is not None

    def _catch_up(self, now: int) -> bool:
        """Record that octets are missing so far; return whether there is room for what comes."""
        if not self._recorder._has_room(0) or not self._begin(now):
            return False
        assert self._conversation is not None
        for direction, missing in enumerate(self._missing):
            if missing:
                self._conversation.skip(direction, missing, now)
        self._missing = [0, 0]
        return True

    def _put(self, octets: int) -> None:
        self._recorder._put(b"".join(self._records), octets)
        self._records.clear()


def _endpoint(name: Any, port: int) -> Endpoint:
    """Return an end by its name; where it is none of an IP socket, it is on the loopback interface."""
    try:
        host, port = name[0].partition("%")[0], name[1]
        return Endpoint(ip_address(host).packed, port)
    except (AttributeError, IndexError, TypeError, ValueError):
        return Endpoint(_LOOPBACK, port)


def _as_version_6(end: Endpoint) -> Endpoint:
    return end if len(end.address) == 16 else Endpoint(_MAPPED + end.address, end.port)


__all__ = ["Recorder", "RecorderStats", "Recording"]
