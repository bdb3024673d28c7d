"""Shell completion functions; tests/integration/sluice/cli/test_completion.py runs bash."""

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from sluice.cli.main import cli

SHELLS = [("bash", "_sluice_completion()"), ("zsh", "#compdef sluice"), ("fish", "function _sluice_completion;")]


@pytest.mark.parametrize(("shell", "begins"), SHELLS)
def test_each_shell_has_a_script(shell: str, begins: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0
    assert result.output.startswith(begins)
    assert "_SLUICE_COMPLETE" in result.output


def test_files_are_completed_where_allowed() -> None:
    items = ShellComplete(cli, {}, "sluice", "_SLUICE_COMPLETE").get_completions(["run"], "thr")
    assert [(item.type, item.value) for item in items] == [("file", "thr"), ("plain", "throttle-storm")]
