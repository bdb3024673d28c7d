"""A build is used as long as it is of the files that are here; else who runs the tests is told what to do."""

from pathlib import Path

import pytest

from tests.clients.build import BUILDS
from tests.clients.built import SOURCES, missing, stamp_of
from tests.clients.clients import CLIENTS
from tests.clients.external import External

STAMP = stamp_of(SOURCES["java-4"])


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        pytest.param("built", STAMP, None, id="built from these files"),
        pytest.param(
            "built",
            stamp_of(SOURCES["java-3.9"]),
            "built from other files than are here: `make test-clients` builds it anew",
            id="built from others",
        ),
        pytest.param("reason", "there is no mvn here", "there is no mvn here", id="could not be built"),
        pytest.param("lib", "", "not built here, which `make test-clients` does", id="a build that broke off"),
    ],
)
def test_why_a_build_cannot_be_used(tmp_path: Path, file: str, text: str, told: str | None) -> None:
    (tmp_path / "java-4").mkdir()
    (tmp_path / "java-4" / file).write_text(text)
    assert missing("java-4", tmp_path) == told


def test_every_client_that_is_built_has_its_sources_and_the_other_way_round() -> None:
    assert [build.client for build in BUILDS] == [*SOURCES]
    assert {client.name for client in CLIENTS if isinstance(client, External)} <= SOURCES.keys()
    assert [name for name, sources in SOURCES.items() if not [*sources.path.rglob("*.*")]] == []
