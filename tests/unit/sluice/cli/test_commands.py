"""Rules for all commands: complete help, JSON tables, and suggestions for wrong names."""

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from sluice.cli.help_pages import EXAMPLES
from sluice.cli.main import COMMANDS, cli
from tests.support.command_lines import check_command_line, usage_error

# Their output is not a table: a running broker's address, source, a schema, a script, one word.
WITHOUT_TABLE = {
    "serve",
    "proxy",
    "protocol show",
    "healthcheck",
    "journal export",
    "faults schema",
    "scenario show",
    "scenario schema",
    "audit schema",
    "audit journal",
    "completion",
}


def walk(group: click.Group, words: tuple[str, ...], parent: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        assert command is not None
        path = (*words, name)
        yield " ".join(path), command
        if isinstance(command, click.Group):
            yield from walk(command, path, click.Context(command, parent, name))


ALL = dict(walk(cli, (), click.Context(cli, info_name="sluice")))
LEAVES = {path: command for path, command in ALL.items() if not isinstance(command, click.Group)}


def help_of(path: str) -> str:
    result = CliRunner().invoke(cli, [*path.split(), "--help"], prog_name="sluice")
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("path", ["", *ALL])
def test_help_of_each_command_is_complete(path: str) -> None:
    message = help_of(path)
    assert message.startswith(f"Usage: {' '.join(['sluice', *path.split()])} ")
    assert "\nExamples:\n  sluice " in message.replace('  eval "$(', "  ")
    assert max(map(len, message.splitlines())) <= 100, "an example is too long for a terminal"
    if path in LEAVES:
        assert re.search(r"\nExit codes:\n  0  \S.*\n  1  \S.*\n(     .*\n)*  2  \S", message)
        variables = [str(param.envvar) for param in LEAVES[path].params if param.envvar]
        assert [name for name in variables if f"\n  {name} " not in message.partition("\nEnvironment:")[2]] == []


@pytest.mark.parametrize("path", ALL)
def test_descriptions_are_imperative_sentences_and_options_have_help(path: str) -> None:
    command = ALL[path]
    first = (command.help or "").strip().partition("\n")[0]
    assert re.match(r"[A-Z][a-z]*[^s\W][ ,]", first), f"{first!r}: expected an imperative, such as List"
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, f"{param.opts[0]} has no help"
            assert param.help[0].isupper(), param.help
            assert param.help.rstrip("]").endswith(".") or "[default" in param.help, param.help


@pytest.mark.parametrize("path", [path for path in LEAVES if path not in WITHOUT_TABLE])
def test_every_table_is_available_as_json(path: str) -> None:
    options = {opt for param in LEAVES[path].params for opt in param.opts}
    assert {"--format", "--json"} <= options


@pytest.mark.parametrize("path", ["", *(path for path, command in ALL.items() if isinstance(command, click.Group))])
def test_group_help_lists_commands_in_whole_sentences(path: str) -> None:
    message = help_of(path).partition("\nExamples:")[0]
    group = ALL.get(path, cli)
    assert isinstance(group, click.Group)
    assert [name for name in group.list_commands(click.Context(group)) if f"\n  {name} " not in message] == []
    assert "..." not in message.partition("ARGS]...")[2].replace("RequestHeader, ...)", ""), "a sentence was cut off"


LINES = [line for page in EXAMPLES.values() for line, _ in page]


@pytest.mark.parametrize("line", [line for line in LINES if not line.startswith("eval ")])
def test_each_example_is_valid(line: str) -> None:
    check_command_line(line)


def test_each_page_has_a_command() -> None:
    assert EXAMPLES.keys() == {"", *ALL}


def test_json_is_short_for_format_json() -> None:
    def output(*options: str) -> str:
        return CliRunner().invoke(cli, ["scenario", "list", *options]).output

    assert output("--json") == output("--format", "json") == output("--json", "--format", "json")
    assert output("--json") != output()
    assert "--json and --format text exclude each other" in output("--json", "--format", "text")


WRONG = {
    "a command": (["surve"], ", completion. Did you mean serve?\n"),
    "a command of a group": (["plan"], "completion. Did you mean pipeline plan?\n"),
    "a command of several groups": (["show"], "completion. Did you mean scenario show or protocol show?\n"),
    "an unknown command": (["xyz"], "xyz: unknown command; expected one of serve, "),
    "a group's command": (
        ["quota", "lst"],
        "lst: unknown command; expected one of delete, explain, list, set. Did you mean list?\n",
    ),
    "a job": (["pipeline", "throtle"], ". Did you mean throttle?\n"),
    "an option": (["quota", "list", "--formt", "json"], ". Did you mean --format?\n"),
    "an option of the main command": (
        ["--versoin"],
        "--versoin: unknown option; expected one of --version, --help. Did you mean --version?\n",
    ),
    "a property": (
        ["config", "list", "--override", "num.partition=3"],
        "num.partition: no such property. Did you mean num.partitions?",
    ),
    "the key of a quota": (
        ["quota", "set", "--client", "a", "producer_rate=1"],
        ", connection_creation_rate. Did you mean producer_byte_rate?\n",
    ),
    "a quota without a key": (["quota", "set", "--client", "a", "=1"], "connection_creation_rate, got =1\n"),
    "a quota to delete": (
        ["quota", "delete", "--client", "a", "producer_byte_rat"],
        ", connection_creation_rate. Did you mean producer_byte_rate?\n",
    ),
    "a rule's field": (["faults", "add", "action=close", "apis=Produce"], "Did you mean api?"),
    "a scenario": (["run", "roling-restart"], ". Did you mean rolling-restart?"),
}


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_misspelled_name_gets_a_suggestion(words: list[str], message: str) -> None:
    assert message in usage_error(*words)


def test_main_help_lists_all_commands() -> None:
    assert list(COMMANDS) == [path for path in ALL if " " not in path]
