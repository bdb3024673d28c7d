"""meta.properties: the broker that owns a data directory."""

from pathlib import Path

import pytest

from sluice.broker.log.disk.meta_properties import Owner, identify, read_meta_properties, write_meta_properties
from sluice.broker.log.disk.text_files import UnreadableFileError

OWNER = Owner("ours", 1, adopts_cluster_id=False)


def test_new_directory_gets_the_cluster_id_of_its_owner_and_keeps_its_directory_id(tmp_path: Path) -> None:
    created = identify(str(tmp_path), OWNER, lambda size: b"\x11" * size)
    assert created.cluster_id == "ours"
    assert identify(str(tmp_path), OWNER, lambda size: b"\x22" * size) == created


def test_owner_without_a_configured_cluster_id_adopts_that_of_the_directory(tmp_path: Path) -> None:
    identify(str(tmp_path), OWNER, lambda size: b"\x11" * size)
    other = Owner("any", 1, adopts_cluster_id=True)
    assert identify(str(tmp_path), other, lambda size: b"\x22" * size).cluster_id == "ours"


def test_missing_file_returns_none(tmp_path: Path) -> None:
    assert read_meta_properties(str(tmp_path / "no")) is None


def test_meta_properties_use_the_java_properties_format(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    write_meta_properties(str(path), {"version": "1", "node.id": "7"})
    assert path.read_text() == "#\nversion=1\nnode.id=7\n"
    path.write_text("#\n#Sat Nov 21\nversion = 1\nnode.id:7\n")
    assert read_meta_properties(str(path)) == {"version": "1", "node.id": "7"}


DAMAGED = {
    "text": (b"garbage", "no identity; expected broker.id"),
    "no node id": (b"version=1\ncluster.id=ours\n", "no identity; expected node.id"),
    "binary": (b"\xff\xfe\0", "binary content; expected text, got byte 0 that is not UTF-8"),
    "incomplete escape": (b"version=1\nnode.id=\\u12", "line 2: expected"),
}


@pytest.mark.parametrize(("content", "problem"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_file_is_reported_with_the_problem(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "meta.properties").write_bytes(content)
    with pytest.raises(UnreadableFileError, match=problem) as raised:
        identify(str(tmp_path), OWNER, lambda size: b"\x11" * size)
    assert str(raised.value).startswith(f"{tmp_path}/meta.properties: ")
