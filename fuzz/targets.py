"""What is fuzzed: functions that take any octets and raise only when a promise is broken.

Each compares the compiled with the pure build, so that a crash is not the only thing that shows. The
options of a run are chosen by its first octets. `run.py` drives these with atheris; the tests replay the
seeds through them without it.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import brokers
import columnar
import talks
from promises import BUILDS, NAMES, chunked, demand
from structured import Builder
from support import captures, make_capture
from support.outcomes import describe, describe_error, encoding

from amqpcodec import DIALECTS, DecodeError, EncodeError, Limits
from amqpcodec import dialect as dialect_named
from amqpcodec._backend import load
from amqpcodec._columns.buffers_py import Batch, filled, values
from amqpcodec._columns.build import open_feeder
from amqpcodec._columns.decoding import Decoding
from amqpcodec._columns.schemas import STREAM_TABLES, Column, table_columns
from amqpcodec._options import resolve
from amqpcodec.capture import (
    CapturedFrame,
    CaptureError,
    Close,
    Connection,
    Data,
    Fault,
    read_frames,
    read_raw_frames,
)
from amqpcodec.options import AllStreamOptions
from amqpcodec.profiles import PROFILES

MAX_FRAMES = 64
LIMITS = {0: Limits(), 8: Limits(table_depth=8, table_entries=64, array_items=16)}
LINK_TYPES = (1, 1, 1, 1, 101, 9, 113, 276, 0, 104, 105, 127, 192, 204, 239, 252, 258)
HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"


@cache
def modules(dialect: str) -> tuple[ModuleType, ModuleType]:
    """A dialect in both builds."""
    return BUILDS[0].dialect(dialect), BUILDS[1].dialect(dialect)


@cache
def encoder_of(module: ModuleType, profile: str | None) -> Any:
    """Return the encoder for what was decoded by a profile."""
    return module.Encoder(profile=profile)


def decoded(decoder: Any, chunks: list[bytes]) -> tuple[list[Any], Any]:
    """Everything a decoder returns, bad frames skipped: the values, and everything in comparable form."""
    values: list[Any] = []
    seen: list[Any] = []
    fed = 0
    for chunk in chunks:
        decoder.feed(chunk)
        fed += len(chunk)
        while True:
            try:
                value = next(decoder)
            except StopIteration:
                break
            except DecodeError as error:
                seen.append(describe_error(error))
                demand(0 <= error.offset <= fed, "offset", error.offset)
                if error.fatal:
                    return values, (seen, decoder.offset)
                decoder.skip_frame()
                continue
            values.append(value)
            seen.append(describe(value))
    return values, (seen, decoder.offset, decoder.pending)


def stable(module: ModuleType, profile: str | None, values: list[Any], raw: bool, tolerant: bool) -> None:
    """A decoded value can be encoded; the result, decoded and encoded again, is the same."""
    reading: dict[str, Any] = {"tables": "raw" if raw else "dict", "tolerant": tolerant}
    encoder = encoder_of(module, profile)
    for value in values[:MAX_FRAMES]:
        if type(value).__name__ == "Message" and not value.complete:
            continue
        try:
            octets = encoder.encode(value, frame_max=0)
        except EncodeError:
            demand(not raw, "a frame with raw tables cannot be encoded", value)
            continue  # a Python value may be one that no tag of the profile carries
        kind = module.MessageDecoder if type(value).__name__ == "Message" else module.FrameDecoder
        decoder = kind(profile=profile, frame_max=0, **reading)
        [again] = decoder.feed(octets)
        demand(encoder.encode(again, frame_max=0) == octets, "encoding is not stable", octets)


def stream(data: bytes) -> None:
    """The frame and message decoders: any dialect, any options, any chunks."""
    if len(data) < 4:
        return
    dialect, options, profile_number, size, octets = NAMES[data[0] % 5], data[1], data[2], data[3], data[4:]
    profile = None if profile_number & 8 else tuple(PROFILES)[profile_number % 5]
    raw = bool(options & 1)
    given: dict[str, Any] = {
        "tables": "raw" if raw else "dict",
        "strict": bool(options & 2),
        "tolerant": bool(profile_number & 16),
        "profile": profile,
        "frame_max": 4096 if options & 4 else 0,
        "limits": LIMITS[options & 8],
    }
    kind = "FrameDecoder"
    if options & 16:
        kind = "MessageDecoder"
        given |= {
            "aborted": "keep" if options & 32 else "error",
            "body": "chunks" if options & 64 else "bytes",
        }
    outcomes = []
    for module in modules(dialect):
        make = getattr(module, kind)
        values, seen = decoded(make(**given), [octets])
        if size:
            _, cut = decoded(make(**given), chunked(octets, size))
            demand(cut[0] == seen[0], "the cut of the stream matters", dialect, given)
        outcomes.append(seen)
        stable(module, profile, values, raw, given["tolerant"])
    demand(outcomes[0] == outcomes[1], "the builds differ", dialect, given)


def dialect_target(dialect: str) -> Callable[[bytes], None]:
    """Methods and content headers of one dialect, in valid envelopes: straight to the generated code."""

    def target(data: bytes) -> None:
        if len(data) < 2:
            return
        options, number, payload = data[0], data[1], data[2:]
        compiled = modules(dialect)[0]
        if options & 1:
            ids = tuple(compiled.METHODS)[number % len(compiled.METHODS)]
            payload = ids[0].to_bytes(2, "big") + ids[1].to_bytes(2, "big") + payload
        else:
            class_id = tuple(compiled.PROPERTIES)[number % len(compiled.PROPERTIES)]
            payload = class_id.to_bytes(2, "big") + payload
        frame_type = 1 if options & 1 else 2
        frame = bytes([frame_type, 0, 1]) + len(payload).to_bytes(4, "big") + payload + b"\xce"
        stream(bytes([NAMES.index(dialect), options >> 1 & 3, 8, 0]) + frame)

    return target


def tables(data: bytes) -> None:
    """Field tables by every profile: both functions that read them, and the encoding of what they read."""
    if not data:
        return
    profile, strict, entries = tuple(PROFILES)[data[0] % 5], bool(data[0] & 128), data[1:]
    sized = entries if data[0] & 64 else len(entries).to_bytes(4, "big") + entries
    outcomes = []
    for build in BUILDS:
        functions = build.tables
        seen: list[Any] = [encoding(functions.decode_pairs, entries, profile)]
        try:
            table = functions.decode_table(sized, profile, strict=strict)
        except DecodeError as error:
            seen.append(describe_error(error))
        else:
            seen.append(describe(table))
            raw = functions.encode_table(build.raw_table(sized[4:], profile), profile)
            demand(raw == sized, "a raw table was changed", raw)
            rewritten(functions, table, profile)
        outcomes.append([seen[1], describe(seen[0])])
    demand(outcomes[0] == outcomes[1], "the builds differ", profile, strict)


def rewritten(functions: ModuleType, table: dict[str, Any], profile: str) -> None:
    try:
        octets = functions.encode_table(table, profile)
    except EncodeError:
        return  # a value that no tag of the profile carries, such as a uint64 read by tag T
    again = functions.decode_table(octets, profile)
    demand(functions.encode_table(again, profile) == octets, "encoding is not stable", octets)


def encoder(data: bytes) -> None:
    """The encoders, from Python values of every kind put together by the octets."""
    build = Builder(data)
    dialect, profile = build.pick(NAMES), build.pick(tuple(PROFILES))
    options = {"profile": profile, "strict": build.flag()}
    frame_max, weight, channel = build.pick((0, 9, 64, 4096)), build.pick((0, 1, 65536)), build.number()
    call = build.pick(("encode_method", "encode_header", "encode_message", "encode_body"))
    start = build.at
    outcomes = []
    for implementation, module in zip(BUILDS, modules(dialect), strict=True):
        build.at = start  # the same values again, made of the same octets
        build.raw_table = implementation.raw_table
        made = module.Encoder(**options)
        if call == "encode_body":
            arguments: tuple[Any, ...] = (channel, build.value())
        else:
            record = build.record(module.METHODS if call != "encode_header" else module.PROPERTIES)
            arguments = (channel, record)
            if call == "encode_header":
                arguments = (channel, record, build.number())
            elif call == "encode_message":
                arguments = (channel, record, build.record(module.PROPERTIES), build.octets())
        given = {"frame_max": frame_max} | ({"weight": weight} if call == "encode_header" else {})
        outcome = encoding(lambda *each: getattr(made, call)(*each, **given), *arguments)  # noqa: B023
        demand(outcome[0] in ("octets", "EncodeError"), outcome)
        outcomes.append(outcome)
        if outcome[0] == "octets":
            readable(module, profile, outcome[1], "raw" if build.raw_tables else "dict")
    demand(outcomes[0] == outcomes[1], "the builds differ", dialect, call, outcomes)


def readable(module: ModuleType, profile: str, octets: bytes, tables: str) -> None:
    """What was written can be read by the profile that wrote it, but for content on channel 0."""
    decoder = module.FrameDecoder(profile=profile, frame_max=0, tables=tables)
    try:
        frames = list(decoder.feed(octets))
    except DecodeError as error:
        demand(error.reply_code == 504, "cannot be read", str(error), octets)
        return
    demand(bool(frames), "nothing was written")


def capture(data: bytes) -> None:
    """The reader of capture files, and of raw streams: it ends, and says `CaptureError` or nothing.

    Both builds find the same events; which limits they have is chosen by the last octet.
    """
    options = captures.TIGHT[data[-1] % len(captures.TIGHT)] if data else {}
    compiled, pure = (captures.events(build, data, **options) for build in BUILDS)
    demand(compiled == pure, "the builds differ", options, compiled, pure)
    rows = [captures.packets(build, data, **options) for build in BUILDS]
    demand(rows[0] == rows[1], "the builds see other packets", options, rows)
    for read in (read_frames, read_raw_frames):
        count = 0
        options: dict[str, Any] = {"port": None} if read is read_frames else {}
        try:
            for item in read(io.BytesIO(data), **options):
                demand(isinstance(item, (CapturedFrame, Fault)), item)
                count += 1
                demand(count <= 64 + len(data), "more items than octets")
        except CaptureError:
            pass


def packets(data: bytes) -> None:
    """The layers of packets up to TCP, tunnels and fragments: both builds find the same segments.

    The first octet chooses the link type. Packets follow, each behind two octets of length.
    """
    if not data:
        return
    linktype, at, made = LINK_TYPES[data[0] % len(LINK_TYPES)], 1, []
    while at + 2 <= len(data) and len(made) < 4096:
        size = int.from_bytes(data[at : at + 2], "big") % 2048
        made.append(make_capture.Recorded(make_capture.START_NS, data[at + 2 : at + 2 + size]))
        at += 2 + size
    octets = make_capture.pcap(made, linktype=linktype)
    compiled, pure = (captures.events(build, octets, port=None) for build in BUILDS)
    demand(compiled == pure, "the builds differ", linktype, compiled, pure)


def columns(data: bytes) -> None:
    """The tables of a stream whose frames are followed from the first on; what is written of its messages."""
    if len(data) < 3:
        return
    dialect, options, size = NAMES[data[0] % 5], data[1], data[2]
    table = STREAM_TABLES[options % 5]
    chosen = [column for column in table_columns(table, [dialect]) if options & 64 or not column.optional]
    octets = HEARTBEAT + data[3:]
    made = [column_outcome(build.name, table, chosen, dialect, chunked(octets, size)) for build in BUILDS]
    demand(made[0] == made[1], "the builds differ", dialect, table)
    if table == "messages":
        batches, _ = made[0]
        written = [column_octets(build.name, chosen, dialect, batches) for build in BUILDS]
        demand(written[0] == written[1], "the builds write differently", dialect)


def _decoding(dialect: str, impl: str) -> Decoding:
    return Decoding.of(resolve(AllStreamOptions, {"dialect": dialect, "batch_rows": 5, "_impl": impl}))


def column_outcome(impl: str, table: str, chosen: list[Column], dialect: str, chunks: list[bytes]) -> Any:
    """The values of every batch, and the error that ended them."""
    sink, feeder = open_feeder(table, chosen, _decoding(dialect, impl))
    connection, offset, error = Connection(0, None, None), 0, None
    try:
        for chunk in chunks:
            feeder.feed(Data(connection, 0, offset, chunk, None, None))
            offset += len(chunk)
        feeder.feed(Close(connection, 0, offset, None, None))
        feeder.feed(Close(connection, 1, 0, None, None))
    except DecodeError as raised:
        error = describe_error(raised)
    batches = sink.batches(True)
    return [list(map(values, chosen, batch.columns)) for batch in batches], error


def column_octets(impl: str, chosen: list[Column], dialect: str, batches: list[Any]) -> Any:
    """The frames of batches, given as values, or the error that ended them."""
    encoder = load("amqpcodec._columns.encode", impl).MessageEncoder(
        chosen, dialect_named(dialect), frame_max=4096, skip_incomplete=True
    )
    try:
        return [
            encoder.encode(Batch(len(lists[0]), tuple(map(filled, chosen, lists)))).octets
            for lists in batches
        ]
    except EncodeError as raised:
        return repr(raised), str(raised)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "stream": stream,
    **{DIALECTS[name]: dialect_target(name) for name in NAMES},
    "tables": tables,
    "encoder": encoder,
    "capture": capture,
    "packets": packets,
    "columns": columns,
    "values": columnar.values,
    "batches": columnar.batches,
    "session": columnar.session,
    "connection": talks.connection,
    "broker": brokers.broker,
}
