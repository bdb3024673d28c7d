"""Checkpoint files in Kafka's format, and errors of unreadable ones."""

from pathlib import Path

import pytest

from sluice.broker.log.disk import text_files


def test_offset_checkpoint_equals_kafkas_format(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    text_files.write_offsets(path, {"orders-0": 5, "a-b.c-12": 0})
    assert Path(path).read_text() == "0\n2\norders 0 5\na-b.c 12 0\n"
    assert text_files.read_offsets(path) == {"orders-0": 5, "a-b.c-12": 0}
    assert [file.name for file in tmp_path.iterdir()] == ["checkpoint"]


def test_checkpoint_can_become_shorter(tmp_path: Path) -> None:
    path = str(tmp_path / "checkpoint")
    text_files.write_checkpoint(path, ["1 100", "2 200"])
    text_files.overwrite_checkpoint(path, ["3 7"])
    assert text_files.read_checkpoint(path) == [["3", "7"]]
    assert Path(path).read_text() == "0\n1\n3 7\n"


def test_missing_checkpoint_is_empty(tmp_path: Path) -> None:
    assert text_files.read_offsets(str(tmp_path / "no")) == {}


UNREADABLE = {
    "empty file": ("", "not a checkpoint"),
    "newer version": ("1\n0\n", "unsupported version; expected 0, got 1"),
    "missing entry": ("0\n2\na 0 1\n", "wrong number of entries; expected 2, got 1"),
    "missing field": ("0\n1\na 0\n", "malformed line; expected TOPIC PARTITION OFFSET"),
    "offset is not a number": ("0\n1\na 0 x\n", "malformed line; expected TOPIC PARTITION OFFSET"),
}


@pytest.mark.parametrize(("content", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_checkpoint_raises_the_reason(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(content)
    with pytest.raises(text_files.UnreadableFileError) as raised:
        text_files.read_offsets(str(path))
    assert str(raised.value) == f"{path}: {message}"
