"""click's errors in the form of all others: one line, exit code 2."""

import pytest

from tests.support.command_lines import usage_error

WRONG = {
    "text for an integer": ("serve --port abc", "--port: expected an integer from 0 to 65535, got abc"),
    "an integer out of range": ("serve --port 70000", "--port: expected an integer from 0 to 65535, got 70000"),
    "an integer without an upper bound": ("serve --seed -1", "--seed: expected an integer of at least 0, got -1"),
    "an integer without bounds": ("demo --seconds x", "--seconds: expected an integer, got x"),
    "a number": (
        "pipeline plan a --output b --max-throttled 7",
        "--max-throttled: expected a number from 0 to 1, got 7.0",
    ),
    "a choice": ("serve --log-format jsn", "--log-format: expected one of text, json, got jsn. Did you mean json?"),
    "a choice of an argument": ("completion zzz", "SHELL: expected one of bash, zsh, fish, got zzz"),
    "a directory for a file": ("journal export /tmp", "FILE: '/tmp' is a directory"),
    "a missing option": ("pipeline plan a", "--output: missing"),
    "a missing argument": ("explain", "CLIENT: missing"),
    "a missing choice": ("completion", "SHELL: missing; expected one of bash, zsh, fish"),
    "a missing integer": ("protocol show Fetch", "VERSION: missing; expected an integer"),
    "an option without its value": ("serve --port", "--port: expected a value, got none"),
    "a value of a flag": ("journal tail --follow=yes", "--follow: expected no value"),
    "an extra argument": ("serve x y", "x y: unexpected argument"),
    "a wrong name": ("protocol show Fetsh 1", ". Did you mean Fetch?"),
    "an option of the main command": ("--nope", "--nope: unknown option; expected one of --version, --help"),
    "a property of the broker": (
        "serve --override node.id=x",
        "--override: node.id: expected an integer from 0 to 2147483647, got x",
    ),
    "a number in an argument": ("protocol show Fetch 99", "VERSION: FetchRequest: expected 0 to 18, got 99"),
}


@pytest.mark.parametrize(("words", "line"), WRONG.values(), ids=WRONG)
def test_wrong_usage_is_one_line_in_the_form_of_all_errors(words: str, line: str) -> None:
    error = usage_error(*words.split())
    assert error.startswith("Error: ")
    assert error.endswith(f"{line}\n")
