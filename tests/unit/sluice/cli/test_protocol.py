"""`sluice protocol show`."""

import ast

import pytest
from click.testing import CliRunner

from sluice.cli.main import cli
from tests.support.command_lines import usage_error

FAST, GENERAL = ["decode_single", "encode_single"], ["decode", "encode"]


GENERATED = [
    ("Metadata", ["MetadataRequest", "MetadataResponse"], GENERAL),
    ("ProduceRequest", ["ProduceRequest"], [*FAST, *GENERAL]),
    ("MetadataResponse", ["MetadataResponse"], GENERAL),
    ("RequestHeader", ["RequestHeader"], GENERAL),
]


@pytest.mark.parametrize(("name", "messages", "functions"), GENERATED)
def test_generated_source_is_printed(name: str, messages: list[str], functions: list[str]) -> None:
    result = CliRunner().invoke(cli, ["protocol", "show", name, "1"])
    assert result.exit_code == 0, result.output
    assert [line for line in result.stdout.splitlines() if line.startswith("# ")] == [f"# {m} v1" for m in messages]
    shown = [node.name for node in ast.walk(ast.parse(result.stdout)) if isinstance(node, ast.FunctionDef)]
    assert shown == functions * len(messages)


def test_unknown_message_is_reported_with_the_known_ones() -> None:
    assert "NAME: expected one of Produce, Fetch, " in usage_error("protocol", "show", "Fetsch", "1")
