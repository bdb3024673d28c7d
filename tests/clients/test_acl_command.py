"""Kafka's kafka-acls.sh, and so the Java admin client, can add, list and remove ACLs."""

from collections.abc import Iterator

import pytest

from tests.clients.kafka_commands import kafka_command
from tests.support.acls import ANONYMOUS_MAY_ALL, AUTHORIZER_ON
from tests.support.broker_process import BrokerProcess, overrides, running_broker

pytestmark = pytest.mark.kafka_commands

ORDERS = "resourceType=TOPIC, name=orders, patternType=LITERAL"
PREFIX = "resourceType=TOPIC, name=ord, patternType=PREFIXED"
TX = "resourceType=TRANSACTIONAL_ID, name=tx, patternType=LITERAL"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with an authorizer that allows ANONYMOUS everything."""
    properties = overrides(AUTHORIZER_ON, ANONYMOUS_MAY_ALL)
    with running_broker(tmp_path_factory.mktemp("secured") / "log", *properties) as process:
        yield process
        assert process.stop()[0] == 0


def kafka_acls(broker: BrokerProcess, *arguments: str) -> dict[str, set[str]]:
    """Return the listed ACLs by resource, without the fields that all of them share."""
    printed = kafka_command("AclCommand", "--bootstrap-server", broker.bootstrap, *arguments).stdout
    found: dict[str, set[str]] = {}
    entries = set[str]()
    for line in map(str.strip, printed.splitlines()):
        if "ResourcePattern(" in line:
            entries = found.setdefault(line.partition("ResourcePattern(")[2].partition(")")[0], set())
        elif line.startswith("(principal=User:"):
            entries.add(line.removeprefix("(principal=User:").removesuffix(")"))
    return found


def test_kafka_acls_adds_lists_and_removes_acls(secured: BrokerProcess) -> None:
    alice = {f"alice, host=*, operation={operation}, permissionType=ALLOW" for operation in ("READ", "DESCRIBE")}
    carol = {f"carol, host=*, operation={operation}, permissionType=ALLOW" for operation in ("WRITE", "DESCRIBE")}
    carol_creates = "carol, host=*, operation=CREATE, permissionType=ALLOW"
    bob = {"bob, host=10.0.0.1, operation=ALL, permissionType=DENY"}

    def call(*arguments: str) -> dict[str, set[str]]:
        return kafka_acls(secured, *arguments)

    reads = ("--allow-principal", "User:alice", "--operation", "Read", "--operation", "Describe", "--topic", "orders")
    assert call("--add", *reads) == {ORDERS: alice}
    denies = ("--deny-principal", "User:bob", "--deny-host", "10.0.0.1", "--operation", "All")
    assert call("--add", *denies, "--topic", "ord", "--resource-pattern-type", "prefixed") == {PREFIX: bob}
    call("--add", "--allow-principal", "User:carol", "--producer", "--topic", "orders", "--transactional-id", "tx")
    assert call("--list") == {ORDERS: alice | carol | {carol_creates}, PREFIX: bob, TX: carol}
    assert call("--list", "--topic", "orders", "--resource-pattern-type", "match") == {
        ORDERS: alice | carol | {carol_creates},
        PREFIX: bob,
    }
    call("--remove", "--force", *reads)
    assert call("--list", "--topic", "orders") == {ORDERS: carol | {carol_creates}}
    call("--remove", "--force", "--topic", "orders", "--resource-pattern-type", "match")
    assert call("--list") == {TX: carol}
