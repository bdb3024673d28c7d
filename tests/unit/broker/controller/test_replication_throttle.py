"""Replication quotas: how long a reassignment takes, and what it does not delay.

The topic configs are leader.replication.throttled.replicas and follower.replication.throttled.replicas.
"""

import pytest

from sluice.broker.controller.configs.resource import BROKER, TOPIC
from sluice.protocol.apis import alter_partition_reassignments as api
from tests.support.configs import config_changes
from tests.support.records import produce
from tests.support.virtual_broker import VirtualBroker
from tests.support.wire import error_codes

LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"
BATCHES = 5
ONE_BATCH_PER_FETCH = "replica.fetch.max.bytes=1"


def configure(cluster: VirtualBroker, kind: int, name: str, **values: str | None) -> None:
    changes = {key.replace("_", "."): value for key, value in values.items()}
    node_id = int(name) if kind == BROKER else 1
    assert error_codes(cluster.client(node_id=node_id).call(config_changes(kind, name, changes), 1)) == []


def throttle(cluster: VirtualBroker, role: str, node_id: int, rate: int | None, replicas: str = "*") -> None:
    configure(cluster, BROKER, str(node_id), **{f"{role}.rate": None if rate is None else str(rate)})
    configure(cluster, TOPIC, "t", **{f"{role}.replicas": replicas})


def filled(*overrides: str, partitions: int = 1) -> VirtualBroker:
    """Return three brokers, of which the first has all partitions, each with some batches."""
    cluster = VirtualBroker("sluice.brokers=3", ONE_BATCH_PER_FETCH, *overrides)
    cluster.topic(assignments=dict.fromkeys(range(partitions), (1,)))
    for index in range(partitions):
        for _ in range(BATCHES):
            assert error_codes(cluster.client(node_id=1).call(produce(9, partition=index), 9)) == []
    return cluster


def move(cluster: VirtualBroker, node_id: int = 2, *, partitions: int = 1) -> None:
    moved = [api.ReassignablePartition(partition_index=index, replicas=[node_id]) for index in range(partitions)]
    request = api.AlterPartitionReassignmentsRequest(topics=[api.ReassignableTopic(name="t", partitions=moved)])
    assert error_codes(cluster.client(node_id=1).call(request, 0)) == []


def has_moved(cluster: VirtualBroker, index: int = 0) -> bool:
    return not cluster.cluster.topics["t"].partitions[index].adding


def batch_bytes(cluster: VirtualBroker) -> int:
    return cluster.partition().log.size_in_bytes // BATCHES


# Throttles of the move from broker 1 to 2 in partition 0: role, broker, share of a batch per second, replicas;
# and the seconds that it takes: all batches except the last, which nothing follows, wait.
THROTTLES = {
    "leader": ([(LEADER, 1, 1, "0:1")], 4),
    "follower": ([(FOLLOWER, 2, 1, "0:2")], 4),
    "every replica": ([(LEADER, 1, 2, "*")], 2),
    "both: the lower rate": ([(LEADER, 1, 2, "*"), (FOLLOWER, 2, 1, "*")], 4),
    "replica of another partition": ([(LEADER, 1, 1, "1:1")], 0),
    "leader's rate, and replica of the follower": ([(LEADER, 1, 1, "0:2")], 0),
    "rate of another broker": ([(LEADER, 3, 1, "*")], 0),
    "no rate": ([(LEADER, 1, None, "*")], 0),
}


@pytest.fixture
def cluster() -> VirtualBroker:
    return filled()


@pytest.mark.parametrize(("throttles", "seconds"), THROTTLES.values(), ids=THROTTLES)
def test_reassignment_takes_the_time_of_its_bytes(
    throttles: list[tuple[str, int, int | None, str]], seconds: int, cluster: VirtualBroker
) -> None:
    for role, node_id, batches_per_s, replicas in throttles:
        rate = None if batches_per_s is None else batches_per_s * batch_bytes(cluster)
        throttle(cluster, role, node_id, rate, replicas)
    move(cluster)
    if seconds:
        cluster.advance(seconds * 1000 - 10)
        assert not has_moved(cluster)
        cluster.advance(20)
    assert has_moved(cluster)
    assert (cluster.partition().leader, cluster.partition().replicas) == (2, (2,))


def test_partitions_share_the_rate_of_a_broker() -> None:
    cluster = filled(partitions=2)
    throttle(cluster, LEADER, 1, batch_bytes(cluster))
    move(cluster, partitions=2)
    cluster.advance(7_900)
    assert not (has_moved(cluster, 0) and has_moved(cluster, 1))
    cluster.advance(1_200)
    assert has_moved(cluster, 0)
    assert has_moved(cluster, 1)


def test_fetch_has_up_to_replica_fetch_max_bytes() -> None:
    cluster = filled("replica.fetch.max.bytes=1048576")
    throttle(cluster, LEADER, 1, 1)
    move(cluster)
    assert has_moved(cluster), "the first fetch has all batches"


@pytest.mark.parametrize("rate", [0, 1])
def test_change_of_the_rate_takes_effect_at_once(rate: int, cluster: VirtualBroker) -> None:
    throttle(cluster, LEADER, 1, rate)
    move(cluster)
    cluster.advance(4_000)
    assert not has_moved(cluster)
    assert cluster.partition().lagging_followers[2].offset == 1, "the first batch is fetched, as there was no debt"
    throttle(cluster, LEADER, 1, None)
    assert has_moved(cluster)


def test_change_of_the_throttled_replicas_takes_effect_at_once(cluster: VirtualBroker) -> None:
    throttle(cluster, LEADER, 1, 1)
    move(cluster)
    configure(cluster, TOPIC, "t", **{f"{LEADER}.replicas": None})
    assert has_moved(cluster)


def test_throttled_reassignment_does_not_delay_producers(cluster: VirtualBroker) -> None:
    throttle(cluster, LEADER, 1, 1)
    move(cluster)
    assert error_codes(cluster.client(node_id=1).call(produce(9, acks=-1), 9)) == []
    assert cluster.partition().log.high_watermark == BATCHES + 1


def test_followers_in_sync_are_not_throttled() -> None:
    cluster = VirtualBroker("sluice.brokers=3", ONE_BATCH_PER_FETCH)
    cluster.topic(assignments={0: (1, 2, 3)})
    for node_id in (1, 2, 3):
        throttle(cluster, FOLLOWER, node_id, 1)
    for _ in range(BATCHES):
        assert error_codes(cluster.client(node_id=1).call(produce(9, acks=-1), 9)) == []
    assert cluster.partition().isr == (1, 2, 3)


def test_topic_that_is_deleted_during_a_throttled_reassignment_stays_deleted(cluster: VirtualBroker) -> None:
    throttle(cluster, LEADER, 1, 1)
    move(cluster)
    cluster.cluster.delete(cluster.cluster.topics["t"])
    cluster.advance(1_000_000)
    assert "t" not in cluster.cluster.topics
