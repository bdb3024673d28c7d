"""Checkpoints: what is written is Kafka's, and what cannot be read says why."""

from pathlib import Path

import pytest

from sluice.broker.log.disk.text_files import (
    UnreadableFileError,
    overwrite_checkpoint,
    read_checkpoint,
    read_offsets,
    write_checkpoint,
    write_offsets,
)


def test_offsets_are_as_kafka_writes_them(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    write_offsets(path, {("orders", 0): 5, ("a-b.c", 12): 0})
    assert Path(path).read_text() == "0\n2\norders 0 5\na-b.c 12 0\n"
    assert read_offsets(path) == {("orders", 0): 5, ("a-b.c", 12): 0}
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint"]


def test_a_checkpoint_may_become_shorter(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    write_checkpoint(path, ["1 100", "2 200"])
    overwrite_checkpoint(path, ["3 7"])
    assert read_checkpoint(path) == [["3", "7"]]
    assert Path(path).read_text() == "0\n1\n3 7\n"


def test_what_is_not_there_is_empty(tmp_path: Path) -> None:
    assert read_offsets(str(tmp_path / "no")) == {}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param("", "not a checkpoint", id="empty"),
        pytest.param("1\n0\n", "unsupported version; expected 0, got 1", id="a newer version"),
        pytest.param("0\n2\na 0 1\n", "wrong number of entries; expected 2, got 1", id="cut off"),
        pytest.param("0\n1\na 0\n", "malformed line; expected TOPIC PARTITION OFFSET", id="too few words"),
        pytest.param("0\n1\na 0 x\n", "malformed line; expected TOPIC PARTITION OFFSET", id="no number"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(content)
    with pytest.raises(UnreadableFileError) as failed:
        read_offsets(str(path))
    assert str(failed.value) == f"{path}: {told}"
