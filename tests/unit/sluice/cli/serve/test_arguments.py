"""The fast option parser of `sluice serve`: equal to click for plain options, and leaves all others to click."""

import click
import pytest
from click.testing import CliRunner

from sluice.cli.serve.arguments import OVERRIDE, PLAIN, ServeArguments, read_plain
from sluice.cli.serve.command import serve
from sluice.config.property_table import AS_RELEASES

TAKEN = [
    pytest.param([], id="nothing"),
    pytest.param(["--port", "0", "--admin-port", "0"], id="values after a space"),
    pytest.param(["--port=65535", "--admin-port=1"], id="values after an equals sign"),
    pytest.param(["--override", "a=b", "--override=c=d=e", "--override", "f="], id="overrides in order"),
    pytest.param(["--host", "::1", "--config", "server.properties", "--seed", "7"], id="texts and numbers"),
    pytest.param(["--log-format", "json", "--as", AS_RELEASES[0]], id="choices"),
    pytest.param(["--port", "1", "--port", "2"], id="a repeated option: the last value"),
    pytest.param(["--brokers", "9"], id="some brokers"),
    pytest.param(["--host", ""], id="an empty host"),
    pytest.param(["--host="], id="an empty host after an equals sign"),
    pytest.param(["--host", "--port"], id="a value that looks like an option"),
]
LEFT = [
    pytest.param(["--help"], id="help"),
    pytest.param(["extra"], id="an argument"),
    pytest.param(["--unknown", "1"], id="an unknown option"),
    pytest.param(["--port"], id="no value"),
    pytest.param(["--port", "65536"], id="an invalid port"),
    pytest.param(["--admin-port", "-1"], id="a negative port"),
    pytest.param(["--seed", "x"], id="no number"),
    pytest.param(["--brokers", "0"], id="no broker"),
    pytest.param(["--brokers", "101"], id="too many brokers"),
    pytest.param(["--seed", "²"], id="a non-ASCII digit"),
    pytest.param(["--log-format", "xml"], id="no choice"),
    pytest.param(["--as", "kafka-0.1"], id="no release"),
    pytest.param(["--", "--port", "0"], id="end of options"),
]


@pytest.mark.parametrize("words", TAKEN)
def test_plain_options_are_parsed_as_by_click(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ServeArguments] = []
    monkeypatch.setattr("sluice.cli.serve.command.run_broker", seen.append)
    assert CliRunner().invoke(serve, words).exit_code == 0
    assert [read_plain(words)] == seen


@pytest.mark.parametrize("words", LEFT)
def test_other_options_are_left_to_click(words: list[str]) -> None:
    assert read_plain(words) is None


def test_both_parsers_have_the_same_options() -> None:
    options = {option for parameter in serve.params if isinstance(parameter, click.Option) for option in parameter.opts}
    assert options == {OVERRIDE, *PLAIN}
