"""sluice answers each case as Apache Kafka did, in memory and on disk."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tools.differential import answers
from tools.differential.brokers import Sluice, sluice
from tools.differential.case import DISK, Case, Layout, load_cases

CASES = list(load_cases().values())
# The cases of one cluster run one after the other, so they are one test for each storage.
STORED = [
    pytest.param(case, storage == DISK, id=f"{case.name} {storage}")
    for case in CASES
    for storage in case.layout.storages
]


class Clusters:
    """The running clusters by layout and storage, each started for its first case."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[tuple[Layout, bool], Sluice] = {}
        self._stack = ExitStack()

    def of(self, layout: Layout, *, on_disk: bool) -> Sluice:
        found = self._running.get((layout, on_disk))
        if found is None:
            folder = self._folder / str(len(self._running))
            folder.mkdir()
            found = self._stack.enter_context(sluice(layout, folder, on_disk=on_disk))
            self._running[layout, on_disk] = found
        return found

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """Clusters that the cases of this process share."""
    running = Clusters(tmp_path_factory.mktemp("differential"))
    yield running
    running.close()


@pytest.mark.parametrize(("case", "on_disk"), STORED)
def test_answers_as_kafka(case: Case, on_disk: bool, clusters: Clusters) -> None:
    expected = answers.read(case.module).get(case.name)
    assert expected is not None, f"no answers; run python -m tools.differential --write '{case.name}'"
    actual = answers.play(case, clusters.of(case.layout, on_disk=on_disk))
    assert answers.unexplained(case, expected, actual) == []
    assert answers.needless(case, expected, actual) == []


def test_answers_have_cases() -> None:
    kept = {name for file in answers.FOLDER.glob("*.json") for name in answers.read(file.stem)}
    assert kept - load_cases().keys() == set()
