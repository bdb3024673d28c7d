"""Kafka's command-line tools print what they print for Apache Kafka (commands.txt), and so does kcat (kcat.txt)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import QUICK_GROUPS
from tests.clients.kafka_commands import commands_version
from tests.ecosystem.sessions import CLASSES, read_sections, run_kcat, run_section
from tests.support.acls import ANONYMOUS_MAY_ALL, AUTHORIZER_ON
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tests.support.share_groups import AT_ONCE as SHARED_AT_ONCE
from tools.docs.results.ecosystem import PAGE, rows_of

SECTIONS = read_sections("commands.txt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def brokers(folder: Path) -> Iterator[BrokerProcess]:
    """Three brokers with data directories and an authorizer; transactions can be written without their coordinator."""
    properties = overrides(
        *QUICK_GROUPS,
        AUTHORIZER_ON,
        ANONYMOUS_MAY_ALL,
        "transaction.partition.verification.enable=false",
        SHARED_AT_ONCE,
        *(f"group.{kind}.{most}session.timeout.ms=600000" for kind in ("share", "streams") for most in ("max.", "")),
    )
    with running_broker(folder / "log", "--brokers", "3", "--data-dir", str(folder / "data"), *properties) as process:
        yield process
        assert process.stop()[0] == 0
        assert " ERROR " not in process.log_text()


@pytest.mark.kafka_commands
@pytest.mark.timeout(600)  # on a busy machine
@pytest.mark.parametrize("title", SECTIONS, ids=[title.partition(":")[0] for title in SECTIONS])
def test_command(title: str, request: pytest.FixtureRequest, folder: Path) -> None:
    of_tool = [("tool", title), ("version", commands_version()), ("commands", str(len(SECTIONS[title])))]
    request.node.user_properties += of_tool
    run_section(SECTIONS[title], request.getfixturevalue("brokers"), folder)


def test_kcat(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    ((title, steps),) = read_sections("kcat.txt").items()
    version = re.findall(r"Version (\S+)", run_kcat("-V").text)[0]
    request.node.user_properties += [("tool", title), ("version", version), ("commands", str(len(steps)))]
    with running_broker(tmp_path / "log", *overrides(*QUICK_GROUPS)) as broker:
        run_section(steps, broker, tmp_path)
        assert " ERROR " not in broker.log_text()


def test_every_command_is_in_the_table() -> None:
    used = {
        name for steps in SECTIONS.values() for step in steps for name in re.findall(r"^kafka-([\w-]+)", step.command)
    }
    assert used == set(CLASSES)


def test_page_lists_every_session() -> None:
    titles = [*SECTIONS, *read_sections("kcat.txt")]
    assert set(rows_of(PAGE.read_text())["commands"]) == {title.partition(": ")[0] for title in titles}
