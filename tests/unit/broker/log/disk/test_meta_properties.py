"""meta.properties: which broker a data directory belongs to."""

from pathlib import Path

from sluice.broker.log.disk.meta_properties import Owner, identify, read_meta_properties, write_meta_properties

OWNER = Owner("ours", 1, adopts_cluster_id=False)


def test_a_new_directory_becomes_the_owners_and_keeps_its_id(tmp_path: Path) -> None:
    made = identify(str(tmp_path), OWNER, lambda size: b"\x11" * size)
    assert made.cluster_id == "ours"
    assert identify(str(tmp_path), OWNER, lambda size: b"\x22" * size) == made


def test_an_owner_without_a_cluster_id_of_its_own_adopts_the_directorys(tmp_path: Path) -> None:
    identify(str(tmp_path), OWNER, lambda size: b"\x11" * size)
    other = Owner("any", 1, adopts_cluster_id=True)
    assert identify(str(tmp_path), other, lambda size: b"\x22" * size).cluster_id == "ours"


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert read_meta_properties(str(tmp_path / "no")) is None


def test_meta_properties_are_java_properties(tmp_path: Path) -> None:
    path = tmp_path / "meta.properties"
    write_meta_properties(str(path), {"version": "1", "node.id": "7"})
    assert path.read_text() == "#\nversion=1\nnode.id=7\n"
    path.write_text("#\n#Sat Nov 21\nversion = 1\nnode.id:7\n")
    assert read_meta_properties(str(path)) == {"version": "1", "node.id": "7"}
