"""The script that sets quotas passes any name to kafka-configs.sh unchanged."""

import os
import subprocess
from pathlib import Path

import pytest

from sluice.spark.charges.charges import By
from sluice.spark.plan.demand import Stated
from sluice.spark.plan.kafka_configs_script import SCRIPT, script
from sluice.spark.plan.recommendation import Need, Recommendation

# Appends its arguments to a file, each followed by a NUL, and an empty argument at the end.
_RECORDER = """#!/bin/sh
printf '%s\\0' "$@" "" >>"$RECORDED"
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
    return Need(user, client_id, quota, "1", 1, Stated("known", 400.0, 0.0), 10, 0.1)


def calls_of(text: str, folder: Path, *arguments: str) -> list[list[str]]:
    """Run the script; return the arguments of each call of kafka-configs.sh."""
    tools, record = folder / "tools", folder / "recorded"
    tools.mkdir()
    recorder = tools / "kafka-configs.sh"
    recorder.write_text(_RECORDER)
    recorder.chmod(0o755)
    (folder / SCRIPT).write_text(text, encoding="utf-8")
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "RECORDED": str(record), "LC_ALL": "C.UTF-8"}
    subprocess.run(["sh", SCRIPT, *arguments], cwd=folder, env=environment, check=True)
    assert {each.name for each in folder.iterdir()} == {"tools", "recorded", SCRIPT}
    return [each.split("\0") for each in record.read_bytes().decode().removesuffix("\0\0").split("\0\0")]


def options(config: str, *entity: str) -> list[str]:
    return ["--bootstrap-server", "b:9092", "--alter", "--add-config", config, *entity]


@pytest.mark.parametrize("name", HOSTILE)
def test_client_id_is_passed_unchanged(name: str, tmp_path: Path) -> None:
    found = Recommendation("Produce", 1000, [need(name)], [], 0.0)
    default, override = calls_of(script([found], "client-id", SCRIPT), tmp_path, "b:9092")
    assert default == options("producer_byte_rate=1000", "--entity-type", "clients", "--entity-default")
    assert override == options("producer_byte_rate=5000", "--entity-type", "clients", f"--entity-name={name}")


@pytest.mark.parametrize("name", HOSTILE)
def test_comment_on_a_client_is_one_line_of_ascii(name: str) -> None:
    text = script([Recommendation("Fetch", 1000, [need(name)], [], 0.0)], "client-id", SCRIPT)
    (comment,) = (line for line in text.splitlines() if "400 bytes/s" in line)
    assert comment.isascii()
    assert comment.isprintable()
    assert comment.startswith("# ")


LEVELS = {
    "per user": (
        "user",
        ["--entity-type", "users", "--entity-default"],
        ["--entity-type", "users", "--entity-name=bob"],
    ),
    "per user and client id": (
        "user+client-id",
        ["--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-default"],
        ["--entity-type", "users", "--entity-name=bob", "--entity-type", "clients", "--entity-name=shop"],
    ),
}


@pytest.mark.parametrize(("by", "default", "override"), LEVELS.values(), ids=LEVELS)
def test_entities_of_each_level(by: By, default: list[str], override: list[str], tmp_path: Path) -> None:
    found = Recommendation("Fetch", 1000, [need("shop" if "+" in by else "", "bob")], [], 0.0)
    calls = calls_of(script([found], by, SCRIPT), tmp_path, "b:9092")
    assert calls == [options("consumer_byte_rate=1000", *default), options("consumer_byte_rate=5000", *override)]


def test_without_a_default_only_overrides_are_set_with_their_headroom(tmp_path: Path) -> None:
    found = Recommendation("Produce", None, [need("shop", quota=5000)], [need("other")], 0.5)
    (call,) = calls_of(script([found], "client-id", SCRIPT), tmp_path, "b:9092")
    assert call == options("producer_byte_rate=7500", "--entity-type", "clients", "--entity-name=shop")


def test_further_options_are_passed_to_kafka_configs(tmp_path: Path) -> None:
    text = script([Recommendation("Produce", 1000, [], [], 0.0)], "client-id", SCRIPT)
    (call,) = calls_of(text, tmp_path, "b:9092", "--command-config", "my admin.properties")
    assert call[2:4] == ["--command-config", "my admin.properties"]


def test_name_with_a_nul_is_only_a_comment(tmp_path: Path) -> None:
    found = Recommendation("Produce", 1000, [need("a\0b"), need("c")], [], 0.0)
    text = script([found], "client-id", SCRIPT)
    assert "cannot contain NUL" in text
    assert "\0" not in text
    assert [call[-1] for call in calls_of(text, tmp_path, "b:9092")[1:]] == ["--entity-name=c"]


def test_without_a_bootstrap_server_the_error_shows_an_example(tmp_path: Path) -> None:
    (tmp_path / SCRIPT).write_text(script([Recommendation("Produce", 1000, [], [], 0.0)], "client-id", SCRIPT))
    done = subprocess.run(["sh", SCRIPT], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "the bootstrap server, such as localhost:9092" in done.stderr
