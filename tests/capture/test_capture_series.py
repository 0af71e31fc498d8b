"""Files belong to one recorder by their names: those that tcpdump, dumpcap and netsniff-ng give them."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from pathlib import Path

import pytest

from amqpcodec.capture.series import natural, series

# Names of one recorder each, in the order in which it writes them.
RECORDERS = {
    "tcpdump -C": ["t.pcap", "t.pcap1", "t.pcap2", "t.pcap10"],
    "tcpdump -C, compressed": ["t2.pcap.gz", "t2.pcap1.gz", "t2.pcap2.gz", "t2.pcap10"],
    "tcpdump -C -W 100": ["ring.pcap00", "ring.pcap01", "ring.pcap99"],
    "tcpdump -C, no ending": ["trace", "trace1", "trace2", "trace10"],
    "tcpdump -G, two dashes": ["u-2026-11-23_14:05:06.pcap", "u-2026-11-23_14:06:06.pcap"],
    "tcpdump -G, -C": ["v-20261123140506.pcap", "v-20261123140506.pcap1", "v-20261123140606.pcap"],
    "tcpdump -G, %F": ["w_2026-11-23.pcap", "w_2026-11-24.pcap", "w_2026-12-01.pcap.zst"],
    "tcpdump -G, zone": ["x-2026-11-23T14:05:06+0100.pcap", "x-2026-11-23T14:15:06+0100.pcap"],
    "tcpdump -G, no dash": ["rabbit320261123140506.pcap", "rabbit320261123140606.pcap"],
    "tcpdump -G, name and time": ["node_1_20261123140506.pcap", "node_1_20261123140606.pcap"],
    "dumpcap": ["node-1_00001_20261123140506.pcapng", "node-1_00002_20261123140606.pcapng"],
    "dumpcap, begun again": ["y_00001_20261123140506.pcapng", "y_00002_20261123140606.pcapng",
                             "y_00001_20261124090000.pcapng", "y_00002_20261124090100.pcapng"],
    "dumpcap, past 99999": ["z_99999_20261123140506.pcapng", "z_00000_20261123140606.pcapng"],
    "dumpcap, nametimenum:2": ["node-2_20261123140506_00001.pcapng", "node-2_20261123140606_00002.pcapng"],
    "dumpcap, an address": ["10.0.0.7_00001_20261123140506.pcap.gz", "10.0.0.7_00002_20261123140606.pcap"],
    "netsniff-ng": ["dump-1732370000.pcap", "dump-1732370060.pcap"],
    "netsniff-ng, a name": ["rabbit4-1732370000.pcap", "rabbit4-1732370060.pcap"],
    "netsniff-ng, no dash": ["rabbit51732370000.pcap", "rabbit51732370060.pcap"],
    "netsniff-ng, a ring": ["rabbit6-0000000000.pcap", "rabbit6-0000000001.pcap"],
    "numbers": ["rabbit1_0.pcap", "rabbit1_1.pcap", "rabbit1_9.pcap", "rabbit1_10.pcap"],
    "numbers of another": ["rabbit2_0.pcap", "rabbit2_1.pcap"],
    "numbers behind a dash": ["e-00001.pcap", "e-00002.pcap", "e-10000.pcap"],
    "numbers behind an address": ["10_0_0_7_1.pcap", "10_0_0_7_2.pcap"],
    "numbers alone": ["1.pcap", "2.pcap", "20261123140506.pcap"],
    "suricata": ["log.pcap.1732370000", "log.pcap.1732370060"],
    "a host": ["node-1.pcap"],
    "another host": ["node-2.pcap"],
    "a host without a dash": ["rabbit1.pcap"],
    "another without a dash": ["rabbit2.pcap"],
    "a port": ["rabbit-5672.pcap"],
    "another port": ["rabbit-5673.pcap"],
    "an address": ["10.0.0.7.pcap"],
    "another address": ["10.0.0.8.pcap"],
    "an address with dashes": ["ip-10-12-13-14.pcap"],
    "an address with lines": ["10_0_0_7.pcap"],
    "another with lines": ["10_0_0_8.pcap"],
    "another ending": ["rabbit1_0.amqp"],
}  # fmt: skip


def test_files_of_one_recorder_are_a_series_and_those_of_another_are_not() -> None:
    """All recorders share a folder here."""
    found = defaultdict(list)
    for recorder, names in RECORDERS.items():
        for name in names:
            found[series(f"s3://bucket/in/{name}", "auto")].append(recorder)
    assert sorted(map(sorted, found.values())) == sorted([name] * len(RECORDERS[name]) for name in RECORDERS)


@pytest.mark.parametrize("recorder", RECORDERS)
def test_files_of_a_series_are_in_the_order_in_which_they_were_made(recorder: str) -> None:
    names = RECORDERS[recorder]
    shuffled = random.Random(recorder).sample(names, len(names))
    assert sorted(shuffled, key=natural) == names
    assert sorted((f"/in/{name}" for name in shuffled), key=natural) == [f"/in/{name}" for name in names]


def test_folders_are_kept_apart() -> None:
    for rotated in ("auto", "true", "false"):
        assert series("/a1/t_1.pcap", rotated) != series("/a2/t_1.pcap", rotated)


def test_a_series_is_a_file_or_a_folder_on_request() -> None:
    assert series("/in/t_1.pcap", "false") != series("/in/t_2.pcap", "false")
    assert series("/in/t_1.pcap", "true") == series("/in/other.pcap.gz", "true") == "/in/"


@pytest.mark.parametrize(
    ("pattern", "together", "apart"),
    [
        (r"-\d+(?=\.pcap)", ["node-1.pcap", "node-22.pcap.gz"], ["host-1.pcap", "node-x.pcap"]),
        (r"^([^.]*)", ["node-1.Mon.pcap", "node-1.Tue.pcap"], ["node-2.Mon.pcap"]),
        (r"^\w+?(\d+)", ["Mon7.pcap", "Tue7.pcap"], ["Mon8.pcap", "none.pcap"]),
        (r"(a)?_\d+", ["b_1.pcap", "c_2.pcap"], ["a_1.pcap"]),
    ],
)
def test_a_pattern_says_what_a_series_is(pattern: str, together: list[str], apart: list[str]) -> None:
    for rotated in ("auto", "true"):
        found = {series(f"/in/{name}", rotated, pattern) for name in together}
        assert len(found) == 1
        assert not found & {series(f"/in/{name}", rotated, pattern) for name in apart}
        assert all(name.startswith("/in/") for name in found)
    assert series("/in/a-1.pcap", "false", pattern) == "/in/a-1.pcap"


def test_no_two_names_are_the_same_in_the_order() -> None:
    names = ["t01.pcap", "t1.pcap", "t1.pcap.gz", "t1.pcap.zst", "t_1", "t_01"]
    assert len({str(natural(name)) for name in names}) == len(names)


def test_the_documented_names_are_of_the_series_beside_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    table = page.partition("| recorder | files | series |")[2].partition("\n\n")[0]
    rows = [line.split(" | ") for line in table.splitlines()[2:]]
    assert len(rows) > 7
    for _, files, wanted in rows:
        found = [series(name, "auto") for name in re.findall("`([^`]+)`", files)]
        if "`" in wanted:
            assert set(found) == set(re.findall("`([^`]+)`", wanted))
        else:
            assert len(set(found)) == len(found)
