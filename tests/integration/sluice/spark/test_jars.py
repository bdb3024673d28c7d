"""Jars are cached, and downloaded with a check of their digest; Ivy is a stub here."""

import sys
from hashlib import sha256
from pathlib import Path

import pytest

from sluice.errors import SluiceError
from sluice.spark import jars
from sluice.spark.connector import CONNECTORS, Jar
from sluice.spark.jars import fetched_jars, given_jars
from sluice.spark.java import Java

NAMES = ("connector", "clients")
CONNECTOR = tuple(Jar("org.example", name, "1", sha256(name.encode()).hexdigest()) for name in NAMES)


class Repository:
    """A stub of a Java that runs Ivy; its repository contains the jars in `holds`, by artifact."""

    def __init__(self, folder: Path) -> None:
        self.holds = {name: name for name in NAMES}
        self._folder = folder
        self.calls = folder / "calls"
        (folder / "bin").mkdir(parents=True)

    @property
    def java(self) -> Java:
        program = self._folder / "bin" / "java"
        program.write_text(
            f"""#!{sys.executable}
import sys
from pathlib import Path
arguments = sys.argv
Path({str(self.calls)!r}).open("a").write(" ".join(arguments) + "\\n")
ivy = Path(arguments[arguments.index("-ivy") + 1]).read_text()
folder = Path(arguments[arguments.index("-retrieve") + 1]).parent
for name, content in {self.holds!r}.items():
    if f'name="{{name}}" rev="1" conf="default->master"' in ivy:
        (folder / f"{{name}}-1.jar").write_text(content)
print("\\t:: unresolved dependency ::" if len({self.holds!r}) < 2 else "")
sys.exit(len({self.holds!r}) < 2)
"""
        )
        program.chmod(0o755)
        return Java(self._folder, 17)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SLUICE_IVY_SETTINGS", raising=False)
    monkeypatch.setitem(CONNECTORS, "0.1", CONNECTOR)
    monkeypatch.setattr(jars, "_ivy", lambda: tmp_path / "ivy.jar")
    return Repository(tmp_path / "java")


class TestFetchedJars:
    def test_jars_are_downloaded_once(self, repository: Repository) -> None:
        found = fetched_jars("0.1", repository.java)
        assert [(path.name, path.read_text()) for path in found] == [
            ("connector-1.jar", "connector"),
            ("clients-1.jar", "clients"),
        ]
        assert fetched_jars("0.1", repository.java) == found
        assert len(repository.calls.read_text().splitlines()) == 1
        assert sorted(path.name for path in found[0].parent.iterdir()) == ["clients-1.jar", "connector-1.jar"]

    def test_corrupt_jars_are_downloaded_again(self, repository: Repository) -> None:
        found = fetched_jars("0.1", repository.java)
        found[1].write_text("half of a jar")
        fetched_jars("0.1", repository.java)
        assert found[1].read_text() == "clients"

    def test_jars_with_another_digest_are_rejected(self, repository: Repository, tmp_path: Path) -> None:
        repository.holds["clients"] = "something else"
        with pytest.raises(
            SluiceError, match=r"^clients-1\.jar: the repository returned another file; expected SHA-256 .*, got "
        ):
            fetched_jars("0.1", repository.java)
        assert not (tmp_path / "cache" / "sluice" / "jars" / "clients-1.jar").exists()

    def test_failed_download_is_reported_with_remedies(self, repository: Repository) -> None:
        del repository.holds["clients"]
        with pytest.raises(
            SluiceError,
            match=r"connector \(unresolved dependency\)\. Give this machine access to Maven Central once, or set "
            r"SLUICE_IVY_SETTINGS=ivysettings\.xml to use another repository, or put clients-1\.jar into a folder and "
            r"pass it with --jars DIR$",
        ):
            fetched_jars("0.1", repository.java)

    def test_jars_come_from_the_configured_repository(
        self, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = tmp_path / "settings.xml"
        monkeypatch.setenv("SLUICE_IVY_SETTINGS", str(settings))
        with pytest.raises(SluiceError, match=rf"^SLUICE_IVY_SETTINGS={settings}: not a file$"):
            fetched_jars("0.1", repository.java)
        settings.touch()
        fetched_jars("0.1", repository.java)
        assert f"-settings {settings}" in repository.calls.read_text()

    def test_uncreatable_cache_folder_is_an_error(self, repository: Repository, tmp_path: Path) -> None:
        (tmp_path / "cache").write_text("a file")
        with pytest.raises(SluiceError, match=r"jars: cannot store Spark's Kafka connector: .*Not a directory"):
            fetched_jars("0.1", repository.java)


class TestGivenJars:
    def test_given_jars_are_all_jars_of_the_folder(self, tmp_path: Path) -> None:
        for jar in CONNECTORS["4.0.0"]:
            (tmp_path / jar.file_name).touch()
        (tmp_path / "mine.jar").touch()
        assert len(given_jars(tmp_path, "4.0.0")) == 5
        with pytest.raises(
            SluiceError, match=r"expected the Kafka connector of PySpark 4\.2\.0, got .*2\.13-4\.0\.0\.jar$"
        ):
            given_jars(tmp_path, "4.2.0")

    def test_given_jars_must_be_complete(self, tmp_path: Path) -> None:
        (tmp_path / "kafka-clients-3.9.2.jar").touch()
        with pytest.raises(
            SluiceError,
            match=r"missing jars of .*: spark-sql-kafka-0-10, spark-token-provider-kafka-0-10, commons-pool2$",
        ):
            given_jars(tmp_path, "4.2.0")

    def test_given_jars_must_be_in_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(SluiceError, match=r"nowhere: not a folder$"):
            given_jars(tmp_path / "nowhere", "4.2.0")
