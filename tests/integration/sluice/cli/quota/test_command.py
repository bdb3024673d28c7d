"""`sluice quota` with a running broker, and its error messages."""

import json
from collections.abc import Iterator
from pathlib import Path
from socket import create_server

import pytest
from click.testing import CliRunner, Result

from sluice.cli.main import cli
from sluice.cli.quota import places
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tests.support.records import produce_of
from tests.support.wire import WireClient


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, ["quota", *args])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    log: Path = tmp_path_factory.mktemp("quota") / "log"
    properties = overrides("quota.producer.default=5000", "num.partitions=1")
    with running_broker(log, *properties) as running:
        yield running


@pytest.mark.parametrize("option", ["--bootstrap", "--proxy"])
def test_quotas_are_set_listed_and_deleted(broker: BrokerProcess, option: str) -> None:
    to = (option, broker.bootstrap if option == "--bootstrap" else broker.admin)
    assert run("list", *to).stdout == "no quotas\n"
    assert run("set", *to, "--user", "alice", "producer_byte_rate=2M", "request_percentage=12.5").stdout == (
        "user alice: producer_byte_rate = 2000000\nuser alice: request_percentage = 12.5\n"
    )
    run("set", *to, "--user", "alice", "--client-default", "consumer_byte_rate=512Ki")
    run("set", *to, "--ip", "10.0.0.1", "connection_creation_rate=5")
    assert run("list", *to).stdout == (
        "ip 10.0.0.1: connection_creation_rate=5\n"
        "user alice: producer_byte_rate=2000000, request_percentage=12.5\n"
        "user alice, client-id <default>: consumer_byte_rate=524288\n"
    )
    listed = run("list", *to, "--client-default", "--format", "json").stdout
    assert json.loads(listed) == [
        {"entity": {"user": "alice", "client-id": None}, "quotas": {"consumer_byte_rate": 524288.0}}
    ]
    deleted = run("delete", *to, "--user", "alice", "producer_byte_rate", "--format", "json").stdout
    assert json.loads(deleted) == {"entity": {"user": "alice"}, "changed": {"producer_byte_rate": None}}
    run("delete", *to, "--user", "alice", "request_percentage")
    run("delete", *to, "--user", "alice", "--client-default", "consumer_byte_rate")
    assert run("delete", *to, "--ip", "10.0.0.1", "connection_creation_rate").stdout == (
        "ip 10.0.0.1: connection_creation_rate deleted\n"
    )
    assert run("list", *to).stdout == "no quotas\n"


def test_failed_deletion_deletes_no_quota(broker: BrokerProcess) -> None:
    to = ("--bootstrap", broker.bootstrap, "--client", "shop")
    run("set", *to, "producer_byte_rate=2M")
    run("set", *to, "--user", "alice", "consumer_byte_rate=1M")
    result = run("delete", *to, "producer_byte_rate", "consumer_byte_rate")
    assert (result.exit_code, result.stderr) == (1, "Error: client-id shop: consumer_byte_rate is not set\n")
    assert "client-id shop: producer_byte_rate=2000000\n" in run("list", *to).stdout
    assert run("delete", *to, "producer_byte_rate").exit_code == 0
    assert run("delete", *to, "--user", "alice", "consumer_byte_rate").exit_code == 0


def test_explanation_of_a_throttled_client(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap, client_id="bronze") as client:
        client.call(produce_of(350_000, 9, "bronze"), 9)  # so the throttle does not end meanwhile
        explained = run("explain", "bronze", "--admin", broker.admin)
        in_json = run("explain", "bronze", "--admin", broker.admin, "--format", "json")
    assert explained.exit_code == 0, explained.output
    lines = explained.stdout.splitlines()
    assert lines[0] == "client bronze of user ANONYMOUS, quota.profile=by-version"
    assert "  -> client-id <default>: 5,000 bytes/s" in lines
    assert "  counted together: client-id bronze; limit: 5,000 bytes/s" in lines
    assert any(
        line.endswith("(35,000 bytes/s - 5,000 bytes/s) / 5,000 bytes/s * 10,000 ms = 60,000 ms") for line in lines
    )
    assert "  throttled requests of the last minute: 60,000 ms on average" in lines
    assert any(line.endswith("produce 60,000 ms on average, 60,000 ms at most, throttled now") for line in lines)
    (seen,) = json.loads(in_json.stdout)["brokers"]
    assert seen["quotas"][0]["last_delay"]["throttle_ms"] == 60_000


def test_port_without_response_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(places._CONFIG, "request.timeout.ms", 200)
    with create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        result = run("list", "--bootstrap", address)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {address}: ApiVersions: no response within 200 ms\n"


def test_unreachable_advertised_address_is_named(tmp_path: Path) -> None:
    properties = overrides("advertised.listeners=PLAINTEXT://127.0.0.1:1")
    with running_broker(tmp_path / "log", *properties) as broker:
        result = run("list", "--bootstrap", broker.bootstrap)
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: {broker.bootstrap}: broker 127.0.0.1:1 (id 1): could not connect: Connection refused\n"
    )
