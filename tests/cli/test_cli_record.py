"""The command `amqpcodec record`: a process between clients and a broker."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path
from types import FrameType, TracebackType

import pytest
from support.marks import posix
from support.recording import recording

from amqpcodec import rabbitmq as amqp
from amqpcodec.aio import Client
from amqpcodec.capture import CapturedFrame, read_frames
from amqpcodec.cli import main, record
from amqpcodec.record import Proxy, Recorder, RecorderStats
from amqpcodec.testing import running_broker


def publish(port: int, size: int) -> None:
    async def work() -> None:
        async with Client(f"amqp://127.0.0.1:{port}") as client:
            await client.call(amqp.Queue.Declare("q"))
            channel = await client.channel()
            await channel.publish(bytes(size), routing_key="q")

    asyncio.run(work())


def test_a_session_is_recorded_until_the_command_is_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "trace.pcap"
    with running_broker() as broker:
        place = broker.url.replace("guest:guest@", "")
        with recording("--to", place, path) as (port, said):
            publish(port, 100_000)
    out, err = said
    assert err == ""
    assert out.startswith(f"{path}: 1 connection, 10")
    frames = [each for each in read_frames(str(path)) if isinstance(each, CapturedFrame)]
    assert sum(isinstance(each.frame.payload, amqp.Basic.Publish) for each in frames) == 1
    assert b"guest\0guest" not in path.read_bytes()


def test_what_is_not_recorded_is_said_and_in_the_exit_code(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full, which is a full disk")
    with running_broker() as broker:
        place = broker.url.replace("guest:guest@", "")
        with recording("--to", place, "--queue-bytes", "64k", "/dev/full", code=1) as (port, said):
            publish(port, 100_000)
    assert "No space left on device" in said[1]
    assert "/dev/full: not recorded: 10" in said[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--listen", "5673", "{path}"], "--listen 5673: it is HOST:PORT"),
        (["--listen", "127.0.0.1:x", "{path}"], "--listen 127.0.0.1:x: it is HOST:PORT"),
        (["--to", "amqp://guest:guest@broker", "{path}"], "--to has no user: the clients log in themselves"),
        (["--to", "http://broker", "{path}"], "a URL of a broker begins with amqp:// or amqps://"),
        (["--key", "key.pem", "{path}"], "--key is that of a --certificate"),
        (["--certificate", "{path}.none", "{path}"], "{path}.none: No such file or directory"),
        pytest.param(["{path}/none"], "{path}/none: Not a directory", marks=posix),
        pytest.param(["--listen", "127.0.0.1:{taken}", "{path}"], "address already in use", marks=posix),
    ],
)
def test_what_cannot_be_used_is_said(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.pcap"
    path.write_bytes(b"")
    with socket.create_server(("127.0.0.1", 0)) as server:
        named = {"path": path, "taken": server.getsockname()[1]}
        assert main(["record", *(each.format(**named) for each in arguments)]) == 2
    assert message.format(**named) in capsys.readouterr().err


@pytest.mark.parametrize("refused", ["port", "argument"])
def test_a_file_is_not_replaced_where_nothing_can_be_recorded(tmp_path: Path, refused: str) -> None:
    path = tmp_path / "trace.pcap"
    path.write_bytes(b"another capture")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}" if refused == "port" else "nowhere"
        assert main(["record", "--listen", listen, str(path)]) == 2
    assert path.read_bytes() == b"another capture"


@posix
def test_ctrl_break_of_windows_ends_it_as_ctrl_c_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "SIGBREAK", signal.SIGUSR1, raising=False)

    async def work() -> None:
        asyncio.get_running_loop().call_later(0.05, signal.raise_signal, signal.SIGUSR1)
        proxy = Proxy(None, "amqp://127.0.0.1:1", port=0)
        await asyncio.wait_for(record._record(proxy, lambda: Recorder(tmp_path / "trace.pcap")), 10)

    def ignored(number: int, frame: FrameType | None) -> None:
        """Be what is there but for the command."""

    before = signal.signal(signal.SIGUSR1, ignored)
    try:
        asyncio.run(work())
        assert signal.getsignal(signal.SIGUSR1) is ignored
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_second_signal_does_not_cut_off_what_is_still_written(tmp_path: Path) -> None:
    handlers = []

    class Slow(Recorder):
        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            signal.raise_signal(signal.SIGINT)
            handlers.append(signal.getsignal(signal.SIGINT))
            super().__exit__(kind, error, trace)

    async def work() -> None:
        asyncio.get_running_loop().call_later(0.05, signal.raise_signal, signal.SIGINT)
        proxy = Proxy(None, "amqp://127.0.0.1:1", port=0)
        await record._record(proxy, lambda: Slow(tmp_path / "trace.pcap"))

    before = signal.getsignal(signal.SIGINT)
    asyncio.run(work())
    assert len(handlers) == 1
    assert handlers[0] is not before
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(("files", "said"), [(1, ""), (2, ", 2 files")])
def test_files_are_counted_where_there_are_several(
    files: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = RecorderStats(
        connections=1, recorded=9, missing=0, left_out=0, missing_connections=0, files=files, error=""
    )
    record._report("t.pcap", done)
    assert capsys.readouterr() == (f"t.pcap: 1 connection, 9 bytes recorded{said}\n", "")
