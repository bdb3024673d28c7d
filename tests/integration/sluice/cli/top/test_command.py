"""`sluice top` in a terminal, and a single report without one."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from sluice import SyncBroker
from sluice.cli.main import cli
from tests.support.terminal import Terminal


@pytest.fixture
def broker() -> Iterator[SyncBroker]:
    """Start two brokers with a throttled client, an unthrottled one, and one with a hostile name."""
    with SyncBroker(2, admin_port=0) as broker:
        broker.quota(produce="100k")
        broker.client("shop").send("orders", bytes(1_040_000))
        broker.client("kitchen").send("orders", bytes(1000))
        broker.client("evil\x1b[2J\nname").send("orders", bytes(10))
        yield broker


def command(broker: SyncBroker, *options: str) -> list[str]:
    return [sys.executable, "-m", "sluice", "top", "--admin", str(broker.admin), *options]


def test_terminal_shows_the_cluster_until_it_is_interrupted(broker: SyncBroker) -> None:
    with Terminal(command(broker)) as terminal:
        shown = terminal.wait_for("shop")
        assert "broker 1 running" in shown
        assert "broker 2 running" in shown
        (shop,) = [line for line in shown.splitlines() if line.startswith("shop")]
        assert shop.split()[2] == "Produce"
        assert "100k" in shop
        assert "evil\\x1b[2J\\nname" in shown, "a client name controls the terminal"
        broker.cluster.stop(2)
        broker.faults.add("close", api="Produce")
        terminal.wait_for("fault-1  in force  hit 0 of 0  action=close api=Produce")
        terminal.wait_for("broker 2 stopped")
        terminal.resize(120, 12)
        terminal.wait_for(lambda screen: len(screen.splitlines()) == 12 and "broker 1 running" in screen)
        terminal.interrupt()
        assert terminal.wait_for_end() == 0


def test_stopped_broker_is_reconnected() -> None:
    with SyncBroker(admin_port=0) as broker:
        broker.client("shop").send("orders", b"1")
        with Terminal(command(broker)) as terminal:
            terminal.wait_for("no quotas, so rates")  # a long version leaves no room for more
            broker.reset()  # this cuts all connections, and the broker comes back
            terminal.wait_for("CLIENT 0/0")
            terminal.interrupt()
            assert terminal.wait_for_end() == 0


def test_once_prints_the_same_as_text_and_json(broker: SyncBroker) -> None:
    def message(*options: str) -> str:
        result = CliRunner().invoke(cli, ["top", "--admin", str(broker.admin), *options])
        assert result.exit_code == 0, result.output
        return result.stdout

    text = message("--once", "--sort", "name")
    assert "broker 1 running" in text
    assert [line.split()[0] for line in text.splitlines()[5:]] == ["evil\\x1b[2J\\nname", "kitchen", "shop"]
    assert "\x1b" not in text
    found = json.loads(message("--json", "--filter", "SHO"))
    (shop,) = found["clients"]
    assert (shop["client_id"], shop["meters"][0]["bound"], found["matched"], found["total"]) == ("shop", 1e5, 1, 3)
    assert [one["id"] for one in found["brokers"]] == [1, 2]
    assert found["quotas"][0]["value"] == 1e5


def test_piped_output_is_a_single_report(broker: SyncBroker) -> None:
    done = subprocess.run(command(broker), capture_output=True, text=True, check=True)
    assert "shop" in done.stdout
    assert done.stderr == ""
