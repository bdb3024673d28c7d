"""Drivers in other languages are built once; a failed build is reported in one line. Their tools are replaced here."""

from pathlib import Path

import pytest

from sluice.audit.subjects import SUBJECTS
from sluice.audit.subjects.program import ProgramSubject
from sluice.errors import SubjectError


@pytest.fixture
def franz_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProgramSubject:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    subject = SUBJECTS["franz-go"]
    assert isinstance(subject, ProgramSubject)
    return subject


def go(folder: Path, script: str) -> None:
    (folder / "go").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "go").chmod(0o700)


def test_driver_is_built_once_in_the_cache(franz_go: ProgramSubject, tmp_path: Path) -> None:
    go(tmp_path, 'echo "$@" >> ../../calls; cp franz/main.go program')
    franz_go.build()
    franz_go.build()
    (program,) = franz_go.command()
    assert Path(program).read_text().startswith("// Command franz")
    assert (tmp_path / "cache/sluice/audit/calls").read_text() == "build -o program ./franz\n"


def test_failed_build_is_reported_and_leaves_nothing(franz_go: ProgramSubject, tmp_path: Path) -> None:
    go(tmp_path, "echo downloading >&2; echo 'dial tcp: no route to host' >&2; exit 1")
    with pytest.raises(SubjectError) as raised:
        franz_go.build()
    assert str(raised.value) == (
        "franz-go: go build -o program ./franz failed: dial tcp: no route to host. It needs access to its registry once"
    )
    assert list((tmp_path / "cache/sluice/audit").iterdir()) == []
