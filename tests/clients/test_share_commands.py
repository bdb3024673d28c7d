"""Kafka's kafka-share-groups.sh and kafka-console-share-consumer.sh work with share groups."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer, ShareConsumer

from sluice.protocol.apis.share_group_describe import ShareGroupDescribeRequest
from tests.clients.conftest import QUICK_GROUPS
from tests.clients.driver import TIMEOUT_S, until
from tests.clients.kafka_commands import kafka_command
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tests.support.wire import WireClient

pytestmark = pytest.mark.kafka_commands

TOPIC, GROUP = "orders", "workers"
VALUES = [str(number) for number in range(10)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with ten records in a topic of two partitions."""
    with running_broker(tmp_path_factory.mktemp("share") / "log", *overrides(*QUICK_GROUPS)) as process:
        arguments = ("--create", "--topic", TOPIC, "--partitions", "2")
        kafka_command("TopicCommand", "--bootstrap-server", process.bootstrap, *arguments)
        producer = Producer({"bootstrap.servers": process.bootstrap})
        for number, value in enumerate(VALUES):
            producer.produce(TOPIC, value.encode(), partition=number % 2)
        assert producer.flush(TIMEOUT_S) == 0
        yield process
        assert process.stop()[0] == 0


def table(broker: BrokerProcess, *arguments: str) -> list[list[str]]:
    """Return the cells of the printed lines, without the heads of tables."""
    printed = kafka_command("consumer.group.ShareGroupCommand", "--bootstrap-server", broker.bootstrap, *arguments)
    rows = [line.split() for line in printed.stdout.splitlines() if line.strip()]
    return sorted(row for row in rows if row[0] not in ("GROUP", "TOPIC"))


def join(broker: BrokerProcess) -> ShareConsumer:
    """Return the only member of the group, after the assignment of both partitions."""
    member = ShareConsumer({"bootstrap.servers": broker.bootstrap, "group.id": GROUP, "client.id": "a client"})
    member.subscribe([TOPIC])
    request = ShareGroupDescribeRequest(group_ids=[GROUP])

    def assigned() -> int:
        member.poll(0.1)
        (group,) = wire.call(request, 1).groups
        return sum(len(topic.partitions) for one in group.members for topic in one.assignment.topic_partitions)

    with WireClient(broker.bootstrap) as wire:
        assert until(assigned, 2) == 2
    return member


def test_kafka_share_groups_describes_resets_and_deletes_a_group(filled: BrokerProcess) -> None:
    of_group = ("--group", GROUP)
    member = join(filled)
    try:
        assert table(filled, "--list", "--state") == [[GROUP, "Stable"]]
        ((group, _, *host_and_client, partitions, assignment),) = table(filled, "--describe", *of_group, "--members")
        assert (group, host_and_client) == (GROUP, ["/127.0.0.1", "a", "client"])
        assert (partitions, assignment) == ("2", f"{TOPIC}:0,1")
    finally:
        member.close()
    assert table(filled, "--reset-offsets", *of_group, "--topic", TOPIC, "--to-earliest", "--execute") == [
        [GROUP, TOPIC, "0", "0"],
        [GROUP, TOPIC, "1", "0"],
    ]
    consume = ("--topic", TOPIC, "--group", GROUP, "--max-messages", str(len(VALUES)))
    printed = kafka_command("consumer.ConsoleShareConsumer", "--bootstrap-server", filled.bootstrap, *consume).stdout
    assert sorted(printed.split()) == VALUES
    lags = {row[2]: row[-1] for row in table(filled, "--describe", *of_group, "--offsets")}
    assert lags == {"0": "0", "1": "0"}
    assert table(filled, "--delete-offsets", *of_group, "--topic", TOPIC) == [[TOPIC, "Successful"]]
    table(filled, "--delete", *of_group)
    assert table(filled, "--list") == []
