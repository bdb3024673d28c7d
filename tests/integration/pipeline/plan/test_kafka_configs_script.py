"""The script that sets quotas: what reaches kafka-configs.sh is what clients are called, whatever that is."""

import os
import subprocess
from pathlib import Path

import pytest

from sluice.pipeline.charges.charges import By
from sluice.pipeline.plan.kafka_configs_script import SCRIPT, script
from sluice.pipeline.plan.recommendation import Need, Recommendation

# Writes its arguments down, each with a NUL behind it, and an empty one in the end.
_RECORDER = """#!/bin/sh
printf '%s\\0' "$@" "" >>"$TOLD"
"""
HOSTILE = [
    "shop",
    "two words",
    "it's; rm -rf ~ #",
    '"; $(touch pwned) `touch pwned` ${HOME} \\',
    "line\nquota=producer_byte_rate=1\n# another",
    "--alter",
    "-x",
    "a=b,c",
    "*?[a]",
    "ü 漢字 🦈",
    "\x1b[31m\r\x07",
    "--entity-default",
]


def need(client_id: str, user: str = "", quota: int = 5000) -> Need:
    return Need(user, client_id, quota, "1", 1, 400.0, 10, 0.1)


def told_by(text: str, folder: Path, *arguments: str) -> list[list[str]]:
    """What kafka-configs.sh was told by the script, each time."""
    tools, told = folder / "tools", folder / "told"
    tools.mkdir()
    recorder = tools / "kafka-configs.sh"
    recorder.write_text(_RECORDER)
    recorder.chmod(0o755)
    (folder / SCRIPT).write_text(text, encoding="utf-8")
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "TOLD": str(told), "LC_ALL": "C.UTF-8"}
    subprocess.run(["sh", SCRIPT, *arguments], cwd=folder, env=environment, check=True)
    assert {each.name for each in folder.iterdir()} == {"tools", "told", SCRIPT}
    return [each.split("\0") for each in told.read_bytes().decode().removesuffix("\0\0").split("\0\0")]


def options(config: str, *entity: str) -> list[str]:
    return ["--bootstrap-server", "b:9092", "--alter", "--add-config", config, *entity]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_client_id_arrives_as_it_is(name: str, tmp_path: Path) -> None:
    found = Recommendation("Produce", 1000, [need(name)], [])
    default, override = told_by(script([found], "client-id", SCRIPT), tmp_path, "b:9092")
    assert default == options("producer_byte_rate=1000", "--entity-type", "clients", "--entity-default")
    assert override == options("producer_byte_rate=5000", "--entity-type", "clients", f"--entity-name={name}")


@pytest.mark.parametrize("name", HOSTILE)
def test_the_script_tells_of_a_client_on_one_line_in_ascii(name: str) -> None:
    text = script([Recommendation("Fetch", 1000, [need(name)], [])], "client-id", SCRIPT)
    (comment,) = (line for line in text.splitlines() if "400 bytes/s" in line)
    assert comment.isascii()
    assert comment.isprintable()
    assert comment.startswith("# ")


@pytest.mark.parametrize(
    ("by", "default", "override"),
    [
        pytest.param(
            "user",
            ["--entity-type", "users", "--entity-default"],
            ["--entity-type", "users", "--entity-name=bob"],
            id="of users",
        ),
        pytest.param(
            "user+client-id",
            ["--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-default"],
            ["--entity-type", "users", "--entity-name=bob", "--entity-type", "clients", "--entity-name=shop"],
            id="of users and client ids",
        ),
    ],
)
def test_quotas(by: By, default: list[str], override: list[str], tmp_path: Path) -> None:
    found = Recommendation("Fetch", 1000, [need("shop" if "+" in by else "", "bob")], [])
    told = told_by(script([found], by, SCRIPT), tmp_path, "b:9092")
    assert told == [options("consumer_byte_rate=1000", *default), options("consumer_byte_rate=5000", *override)]


def test_more_options_go_to_kafka_configs(tmp_path: Path) -> None:
    text = script([Recommendation("Produce", 1000, [], [])], "client-id", SCRIPT)
    (told,) = told_by(text, tmp_path, "b:9092", "--command-config", "my admin.properties")
    assert told[2:4] == ["--command-config", "my admin.properties"]


def test_a_name_with_a_nul_is_left_out_and_said(tmp_path: Path) -> None:
    found = Recommendation("Produce", 1000, [need("a\0b"), need("c")], [])
    text = script([found], "client-id", SCRIPT)
    assert "cannot be set" in text
    assert "\0" not in text
    assert [told[-1] for told in told_by(text, tmp_path, "b:9092")[1:]] == ["--entity-name=c"]


def test_without_a_bootstrap_server_it_says_how_it_is_called(tmp_path: Path) -> None:
    (tmp_path / SCRIPT).write_text(script([Recommendation("Produce", 1000, [], [])], "client-id", SCRIPT))
    done = subprocess.run(["sh", SCRIPT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "the bootstrap server, such as localhost:9092" in done.stderr
