"""The main command: listed commands, lazy imports and failures."""

import click
import pytest
from click.testing import CliRunner

from sluice import __version__
from sluice.cli import main
from sluice.cli.main import cli
from sluice.cli.quota.command import explain, quota
from sluice.errors import ConfigError, SluiceError


def test_version() -> None:
    result = CliRunner().invoke(cli, ["--version"], prog_name="sluice")
    assert result.output == f"sluice {__version__}\n"


def test_explain_is_the_quota_explain_command() -> None:
    assert cli.get_command(click.Context(cli), "explain") is explain


def test_quotas_is_an_alias_of_quota() -> None:
    assert cli.get_command(click.Context(cli), "quotas") is quota
    assert "quotas" not in cli.list_commands(click.Context(cli)), "the help lists each command once"


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [(SluiceError("the port is taken"), 1), (ConfigError("the port is taken"), 2)],
    ids=["an operational error has exit code 1", "a configuration error has exit code 2"],
)
def test_known_errors_are_one_line(error: SluiceError, exit_code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def failing() -> None:
        raise error

    monkeypatch.setattr(main.Sluice, "get_command", lambda *_: failing)
    result = CliRunner().invoke(cli, ["failing"])
    assert (result.exit_code, result.stderr) == (exit_code, "Error: the port is taken\n")


def test_without_a_command_the_help_is_shown() -> None:
    result = CliRunner().invoke(cli, [])
    assert "Commands:" in result.output
    assert result.exit_code in (0, 2)  # 0 up to click 8.1
