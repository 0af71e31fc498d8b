"""A folder gets all files that were written for it or none, and steps that are taken twice do no harm."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from amqpcodec.spark.committer import Committer


def committer(folder: Path, save: str = "errorifexists") -> Committer:
    return Committer(str(folder), save, "name")


def written(job: Committer, name: str = "part") -> tuple[str, str]:
    staged = job.staged(name)
    Path(staged[0]).write_text(name, encoding="utf-8")
    return staged


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_that_another_attempt_has_made_is_not_there_already(tmp_path: Path) -> None:
    job = committer(tmp_path / "out")
    job.prepare()
    job.prepare()
    job.commit([written(job)])
    assert names(tmp_path / "out") == ["_SUCCESS", "part"]
    with pytest.raises(FileExistsError, match="is there already"):
        Committer(job.target, job.save, "another").prepare()


def test_a_commit_that_is_done_again_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "before").write_text("before", encoding="utf-8")
    job = committer(tmp_path / "out", "overwrite")
    job.prepare()
    files = [written(job)]
    for _ in range(2):
        job.commit(files)
        assert names(tmp_path / "out") == ["_SUCCESS", "part"]


def test_a_file_that_is_nowhere_is_not_committed(tmp_path: Path) -> None:
    job = committer(tmp_path / "out")
    job.prepare()
    with pytest.raises(FileNotFoundError):
        job.commit([job.staged("part")])
    assert "_SUCCESS" not in names(tmp_path / "out")


@pytest.mark.parametrize("save", ["append", "overwrite"])
def test_two_writings_of_a_folder_leave_each_other_alone(tmp_path: Path, save: str) -> None:
    one, other = Committer(str(tmp_path), save, "one"), Committer(str(tmp_path), save, "other")
    one.prepare()
    other.prepare()
    file = written(other, "other")
    one.commit([written(one, "one")])
    other.commit([file])
    assert names(tmp_path) == ["_SUCCESS", *(["one"] if save == "append" else []), "other"]


@pytest.mark.parametrize("target", ["", "file://out"])
def test_a_folder_without_a_name_is_not_the_one_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="is no path"):
        Committer(target, "overwrite", "name").prepare()
    assert names(tmp_path) == ["kept"]


@pytest.mark.parametrize(("read", "target"), [("link", "out"), ("out", "link"), ("out/far", "out")])
def test_what_is_read_through_a_link_is_not_overwritten(tmp_path: Path, read: str, target: str) -> None:
    for folder in ("out", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.pcap").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to("out")
    (tmp_path / "out" / "far").symlink_to(tmp_path / "elsewhere")
    file = f"{tmp_path}/{read}/a.pcap"
    with pytest.raises(ValueError, match=rf"{file}' is read, so '{tmp_path}/{target}' cannot be overwritten"):
        committer(tmp_path / target, "overwrite").prepare([file])
    committer(tmp_path / target, "append").prepare([file])
    committer(tmp_path / "elsewhere", "overwrite").prepare(
        [f"{tmp_path}/link/a.pcap", "s3://bucket/elsewhere/a"]
    )


def test_one_slash_behind_a_scheme_is_not_a_folder_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"'hdfs:/out' is no path: two slashes stand after a scheme"):
        committer(Path("hdfs:/out")).prepare()
    assert names(tmp_path) == []
