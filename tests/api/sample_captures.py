"""A user's use of captures: layer by layer, as tables, and as a summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_type

import pyarrow as pa  # type: ignore[import-untyped]

from amqpcodec import arrow, capture, replay, stats


def frames(path: str) -> Iterator[str]:
    """Frames of a capture, and of a file of one direction."""
    for item in capture.read_frames(path, dialect="auto", port=(5672,), frame_max=1 << 20):
        match item:
            case capture.CapturedFrame():
                assert_type(item.connection, capture.Connection)
                assert_type(item.time_ns, int | None)
                assert_type(item.offset, int)
                assert_type(item.octets, bytes)
                yield capture.DIRECTION_NAMES[item.direction]
            case capture.Fault():
                assert_type(item.connection, capture.Connection | None)
                yield assert_type(item.message, str)
    yield str(len([*capture.read_frames([path, path + "1"])]))  # of one recording
    raw: Iterator[capture.Item] = capture.read_raw_frames(path, direction=capture.SERVER_TO_CLIENT)
    yield str(len([*raw]))


def layers(path: str) -> list[capture.Item]:
    """The layers below, one by one."""
    tracker = capture.StreamTracker(port=5672, out_of_order_bytes=1 << 20)
    with open(path, "rb") as file:
        source = capture.ByteSource(file)
        packets = capture.read_packets(source, max_record_bytes=capture.MAX_RECORD)
        assert_type(packets, Iterator[capture.Packet | capture.Fault])
        segments = capture.read_segments(packets)
        assert_type(segments, Iterator[capture.Segment | capture.Fault])
        events = capture.read_streams(segments, tracker)
        assert_type(events, Iterator[capture.Event | capture.Fault])
        found = [*capture.read_items(events)]
        assert_type(capture.read_events(source, tracker), Iterator[capture.Event | capture.Fault])
        assert_type(
            capture.raw_events(source, capture.CLIENT_TO_SERVER), Iterator[capture.Event | capture.Fault]
        )
    return found


def one_packet(packet: capture.Packet, tracker: capture.StreamTracker) -> list[str]:
    """One packet by hand."""
    segment = capture.tcp_segment(packet)
    if segment is None:
        return []
    assert_type(segment.source, capture.Endpoint)
    located = tracker.locate(segment)
    assert_type(located, capture.LocatedSegment | None)
    shown = []
    for event in tracker.feed(segment):
        match event:
            case capture.Data(octets=octets):
                shown.append(f"{assert_type(octets, bytes)!r}")
            case capture.Gap(length=length):
                shown.append(f"{assert_type(length, int)} missing")
            case capture.Aside(message=message):
                shown.append(assert_type(message, str))
            case capture.Close(connection=capture.Connection(proxied=proxied)) if proxied is not None:
                shown.append(f"closed, of {assert_type(proxied, capture.Proxied).client}")
            case capture.Close():
                shown.append("closed")
    return shown


def unreadable(path: str) -> bool:
    """A file that is no capture."""
    try:
        return not [*frames(path)]
    except capture.CaptureError as error:
        return not str(error)


def columns(octets: bytes, path: str) -> None:
    """Streams, values and captures to record batches."""
    batch: pa.RecordBatch = arrow.decode_messages(octets, columns=["exchange", "body_size"])
    batch = arrow.decode_frames(octets, frame_max=4096)
    batch = arrow.decode_methods(octets, dialect="rabbitmq-0-9-1")
    values: pa.Array = pa.array([octets])
    batch = arrow.decode_values(values, "methods", explode=True, mode="permissive")
    batch = arrow.ValueDecoder("methods", explode=True).decode(values)
    decoder = arrow.BatchDecoder("messages", batch_rows=1000)
    batches: list[pa.RecordBatch] = [*decoder.feed(octets), *decoder.finish()]
    schema: pa.Schema = arrow.schema("messages", columns=["ts", "exchange"])

    reader = arrow.read_capture(path, "messages", include_credentials=True)
    assert_type(reader, arrow.CaptureReader)
    assert_type(arrow.read_stream(path, "frames"), arrow.CaptureReader)
    schema = reader.schema
    rows: pa.RecordBatchReader = reader.reader()
    table: pa.Table = rows.read_all()
    batches += [*reader]
    assert table.schema == schema
    assert batch not in batches


def encoded(batch: pa.RecordBatch, path: str) -> int:
    """Messages in columns back to frames, files and captures."""
    assert_type(arrow.encode_messages(batch, dialect="rabbitmq-0-9-1", frame_max=4096), bytes)
    values: pa.ChunkedArray = arrow.encode_values(batch, mode="permissive")
    with arrow.StreamWriter(path, path + ".index") as stream, arrow.CaptureWriter(path + ".pcap") as file:
        return len(values) + assert_type(stream.write(batch), int) + assert_type(file.write(batch), int)


def parts(paths: list[str]) -> bytes:
    """A recording read part by part, and by many at once."""
    session = arrow.CaptureSession("messages", columns=["exchange"])
    rows = 0
    for path in paths:
        batches: Iterator[pa.RecordBatch] = session.read(path)
        rows += sum(len(batch) for batch in batches)
    state = assert_type(session.suspend(), bytes)
    last = arrow.CaptureSession("messages", columns=["exchange"], state=state)
    assert rows + sum(len(batch) for batch in last.finish())
    return [*arrow.scan_capture([[(path, path)] for path in paths], "messages")][-1]


def summary(path: str) -> dict[str, Any]:
    """Who talked, what was carried where, how long answers took."""
    collector = stats.Collector(top=20, dialect="auto")
    assert_type(collector.add(path, "trace"), bool)
    found = collector.summary()
    assert_type(found, stats.Summary)
    assert_type(found.exchanges, stats.Ranking)
    assert_type(found.exchanges.rows, list[dict[str, Any]])
    assert_type(found.rates, stats.Rates)
    assert_type(found.confirms, stats.Latency)
    assert_type(found.confirms.slowest, list[stats.Slow])
    assert_type(found.problems, list[stats.Problem])
    assert_type(found.findings, list[stats.Finding])
    assert_type(found.first_incidents, list[stats.Incident])
    assert_type(found.depths, list[stats.QueueDepth])
    assert_type(found.by_queue, list[stats.Party])
    assert_type(found.waits, list[stats.Wait])
    assert_type(found.published_by, list[stats.Publishers])
    assert_type(found.published_by[0].clients, list[stats.Client])
    assert_type(found.acks.over_time, stats.Band)
    assert_type(found.lives, list[stats.Life])
    for ending in found.endings:
        assert_type(ending, stats.Ending)
        assert_type(ending.before, list[stats.Step])
    return found.as_dict()


async def again(path: str, url: str) -> None:
    """Publish again what clients have published."""
    replayer = replay.Replayer(url, speed=2.0, drop_user_id=True)
    await replayer.run(replay.read_publishes(path, port=5672))
    report = assert_type(replayer.report, replay.ReplayReport)
    assert_type(report.unknown, list[int])
    reader = replay.PublishReader()
    for item in capture.read_frames(path):
        publish = assert_type(reader.feed(item), replay.CapturedPublish | None)
        if publish is not None:
            assert_type(publish.body, bytes)
    reader.finish()
