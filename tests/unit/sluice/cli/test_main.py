"""The main command: listed commands, lazy imports and failures."""

import click
import pytest
from click.testing import CliRunner

from sluice import __version__
from sluice.cli import main
from sluice.cli.main import COMMANDS, cli
from sluice.cli.quota.command import explain, quota
from sluice.errors import ConfigError, SluiceError
from tests.support.command_lines import usage_error


def test_version() -> None:
    result = CliRunner().invoke(cli, ["--version"], prog_name="sluice")
    assert result.output == f"sluice {__version__}\n"


def test_help_lists_every_command() -> None:
    result = CliRunner().invoke(cli, ["--help"])
    assert result.exit_code == 0
    assert [name for name in COMMANDS if f"\n  {name} " not in result.output] == []


@pytest.mark.parametrize("name", ["config", "healthcheck", "protocol", "serve"])
def test_every_command_has_a_module_of_its_name(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name


def test_explain_is_the_quota_explain_command() -> None:
    assert cli.get_command(click.Context(cli), "explain") is explain


def test_quotas_is_an_alias_of_quota() -> None:
    assert cli.get_command(click.Context(cli), "quotas") is quota
    assert "quotas" not in cli.list_commands(click.Context(cli)), "the help lists each command once"


@pytest.mark.parametrize(
    ("args", "line"),
    [
        pytest.param(
            ["surv"],
            "surv: unknown command; expected one of serve, demo, top, explain, quota, ",
            id="an unknown command, with the known ones",
        ),
        pytest.param(
            ["config", "list", "--format", "xml"], "--format: expected one of text, json, got xml", id="a wrong choice"
        ),
        pytest.param(["config", "list", "--fromat"], "--fromat: unknown option", id="a wrong flag"),
        pytest.param(["--nope"], "--nope: unknown option", id="a wrong flag of the command itself"),
        pytest.param(["config", "list", "--override", "a=b"], "--override: a: no such property", id="a wrong property"),
        pytest.param(["serve", "--port", "99999"], "from 0 to 65535", id="an invalid port"),
        pytest.param(["serve", "--override", "node.id=x"], "node.id: expected", id="a wrong value for the broker"),
        pytest.param(["protocol", "show", "Fetch"], "VERSION: missing; expected an integer", id="a missing argument"),
    ],
)
def test_wrong_usage_is_one_line_with_exit_code_2(args: list[str], line: str) -> None:
    error = usage_error(*args)
    assert error.startswith("Error: ")
    assert line in error


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
