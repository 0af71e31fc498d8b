"""Connections and channels from their beginning to their end."""

from __future__ import annotations

from pathlib import Path

from support import make_capture as make
from support.troubled import Talk, troubled

from amqpcodec import rabbitmq as amqp
from amqpcodec import stats
from amqpcodec.cli.statsections import lives

SECOND = 10**9


def _summary(truth: make.Truth, folder: Path, top: int = 10) -> stats.Summary:
    path = folder / "made.pcap"
    path.write_bytes(make.pcap(truth.packets, nanos=True))
    collector = stats.Collector(top=top)
    collector.add(path, path.name)
    return collector.summary()


def _lives(truth: make.Truth, folder: Path) -> list[stats.Life]:
    return _summary(truth, folder).lives


def _channel(talk: Talk, number: int, code: int | None = 200) -> None:
    """Open a channel for a second, and close it with a reply code if there is one."""
    talk.client(amqp.Channel.Open(), number)
    talk.server(amqp.Channel.OpenOk(), number)
    talk.wait(1)
    if code is not None:
        close = amqp.Channel.Close(reply_code=code, reply_text=f"text {number}", class_id=50, method_id=10)
        talk.server(close, number)
        talk.client(amqp.Channel.CloseOk(), number)


def test_each_end_has_its_reason(tmp_path: Path) -> None:
    found = _lives(troubled(), tmp_path)
    assert [
        (life.flow, life.channel, life.ended, life.reply_code, round((life.duration_ns or 0) / SECOND))
        for life in found
    ] == [
        (0, 0, "closed", 200, 7),
        (0, 1, "with-connection", None, 7),
        (1, 0, "broken", None, 11),
        (1, 1, "with-connection", None, 11),
        (2, 0, "closed", 530, 0),
        (3, 0, "broken", None, 0),
        (4, 0, "recording", None, 26),
        (4, 1, "recording", None, 26),
    ]
    assert [life.flow for life in found if life.went_wrong] == [1, 2, 3]
    assert {(life.by, life.reply_text) for life in found if life.reply_code} == {
        ("client", "bye"), ("server", "NOT_ALLOWED - vhost"),
    }  # fmt: skip


def test_channels_that_an_error_closed_are_kept_of_many(tmp_path: Path) -> None:
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    for number in range(2, 30):
        _channel(talk, number, 404 if number in (9, 20) else 200)
    _channel(talk, 9, None)  # the number again
    talk.goodbye()
    whole, *channels = _lives(truth, tmp_path)
    assert (whole.channels, whole.ended) == (1 + 28 + 1, "closed")
    assert sorted((life.channel, life.reply_code, life.reply_text) for life in channels) == [
        (2, 200, "text 2"), (3, 200, "text 3"), (9, 404, "text 9"), (20, 404, "text 20"),
    ]  # fmt: skip
    assert all(round((life.duration_ns or 0) / SECOND) == 1 for life in channels)


def test_a_channel_whose_end_was_not_recorded_ends_where_its_number_is_opened_again(tmp_path: Path) -> None:
    truth = make.Truth()
    talk = Talk(truth, 1).opened()
    _channel(talk, 2, None)
    _channel(talk, 2, 404)
    talk.goodbye()
    found = [(life.channel, life.ended, life.reply_code) for life in _lives(truth, tmp_path)]
    assert found[0] == (0, "closed", 200)
    assert sorted(found[1:]) == [
        (1, "with-connection", None), (2, "closed", 404), (2, "with-connection", None),
    ]  # fmt: skip


def test_the_largest_are_kept_and_the_first_that_went_wrong(tmp_path: Path) -> None:
    truth = make.Truth()
    for number in range(1, 9):
        talk = Talk(truth, number).opened()
        talk.client(amqp.Queue.Declare(queue="q" * number))
        if number < 4:
            _channel(talk, 2, 404)
        talk.goodbye()
    summary = _summary(truth, tmp_path, top=2)
    assert [life.flow for life in summary.lives if not life.channel] == [0, 1, 2, 7]
    assert lives(summary).notes[-1] == "Connections that are not shown: 4."
