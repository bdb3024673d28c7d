"""How far something is: a bar on a terminal, which is gone in the end; nothing anywhere else."""

import pytest

from sluice.cli.progress import progress


def test_where_there_is_no_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as tell:
        tell("events", 5, 10)
    assert capsys.readouterr() == ("", "")
