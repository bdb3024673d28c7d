"""`sluice protocol show`."""

import ast

import pytest
from click.testing import CliRunner

from sluice.cli.main import cli
from tests.support.command_lines import usage_error

FAST, GENERAL = ["decode_single", "encode_single"], ["decode", "encode"]


@pytest.mark.parametrize(
    ("name", "messages", "functions"),
    [
        ("Metadata", ["MetadataRequest", "MetadataResponse"], GENERAL),
        ("ProduceRequest", ["ProduceRequest"], [*FAST, *GENERAL]),
        ("MetadataResponse", ["MetadataResponse"], GENERAL),
        ("RequestHeader", ["RequestHeader"], GENERAL),
    ],
)
def test_generated_source_is_printed(name: str, messages: list[str], functions: list[str]) -> None:
    result = CliRunner().invoke(cli, ["protocol", "show", name, "1"])
    assert result.exit_code == 0, result.output
    assert [line for line in result.stdout.splitlines() if line.startswith("# ")] == [f"# {m} v1" for m in messages]
    shown = [node.name for node in ast.walk(ast.parse(result.stdout)) if isinstance(node, ast.FunctionDef)]
    assert shown == functions * len(messages)


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["Fetsch", "1"], "NAME: expected one of Produce, Fetch, "),
        (["Fetch", "99"], "VERSION: FetchRequest: expected 0 to 18, got 99"),
    ],
    ids=["an unknown message, with the known ones", "an unknown version, with the known ones"],
)
def test_invalid_argument_is_one_line(args: list[str], line: str) -> None:
    assert line in usage_error("protocol", "show", *args)
