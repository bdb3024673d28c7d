"""Progress bars, shown on terminals only."""

import pytest

from sluice.cli.progress import progress


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as report:
        report("events", 5, 10)
    assert capsys.readouterr() == ("", "")
