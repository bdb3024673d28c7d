"""A build is used only if it matches the current sources; otherwise the reason names the command to run."""

from pathlib import Path

import pytest

from tests.clients.build import BUILDS
from tests.clients.built import SOURCES, missing, stamp_of
from tests.clients.clients import CLIENTS
from tests.clients.external import External

BUILT = {
    "current build": ("built", stamp_of(SOURCES["java-4"]), None),
    "stale build": (
        "built",
        stamp_of(SOURCES["java-3.9"]),
        "built from other sources; run `python -m tests.clients.build java-4`",
    ),
    "build failed": ("reason", "not installed: mvn", "not installed: mvn"),
    "incomplete build": ("lib", "", "not built; run `python -m tests.clients.build java-4`"),
}


@pytest.mark.parametrize(("file", "text", "reason"), BUILT.values(), ids=BUILT)
def test_missing_returns_why_a_build_is_unusable(tmp_path: Path, file: str, text: str, reason: str | None) -> None:
    (tmp_path / "java-4").mkdir()
    (tmp_path / "java-4" / file).write_text(text)
    assert missing("java-4", tmp_path) == reason


def test_builds_and_sources_name_the_same_clients() -> None:
    assert [build.client for build in BUILDS] == [*SOURCES]
    assert {client.name for client in CLIENTS if isinstance(client, External)} <= SOURCES.keys()
    assert [name for name, sources in SOURCES.items() if not [*sources.path.rglob("*.*")]] == []
