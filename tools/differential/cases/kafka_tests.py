"""What Kafka's own Java tests check: features and their levels, racks, and throttled reassignments.

Apache Kafka places replicas at random, so their distribution is compared instead of their ids.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from sluice.broker.controller.configs.resource import BROKER, TOPIC
from tests.support.configs import config_changes
from tests.support.messages import request
from tests.support.records import batch, fetch, fetched, produce
from tests.support.wire import error_codes
from tools.differential import requests
from tools.differential.case import Layout, case
from tools.differential.session import Session

UPGRADE, SAFE, UNSAFE = 1, 2, 3
DISABLED = tuple(f"{name}.version=0" for name in ("group", "share", "streams"))
OLD = Layout(features=("metadata.version=20",), name="features of Kafka 3.8")
WITHOUT_GROUPS = Layout(features=(*DISABLED, "transaction.version=1"))
RACKS = Layout(
    brokers=4,
    racks=("a", "a", "b", "b"),
    properties=(
        "num.partitions=8",
        "default.replication.factor=2",
        "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector",
    ),
)
SLOW = Layout(brokers=3, properties=("replica.fetch.max.bytes=1",), name="slow replication")


# -- MetadataVersionIntegrationTest, FeatureCommandTest ----------------------------------------------------------------


def features(session: Session, **expected: int) -> None:
    """Compare the features of ApiVersions once it has some levels; Kafka's are in a hash map."""

    def has_levels(response: Any) -> bool:
        levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
        return all(levels.get(f"{name}.version", 0) == level for name, level in expected.items())

    lists = "supported_features", "finalized_features"
    versions = request("ApiVersions", client_software_name="a", client_software_version="1")
    session.eventually(versions, 4, has_levels, unordered=lists, only=lists)


def update(session: Session, *updates: tuple[str, int, int], version: int = 2) -> None:
    keys = [
        {"feature": f"{name}.version", "max_version_level": level, "upgrade_type": kind}
        for name, level, kind in updates
    ]
    session.call(request("UpdateFeatures", feature_updates=keys, timeout_ms=requests.TIMEOUT_MS), version)


@case(OLD)
def features_of_an_older_cluster_are_upgraded_and_downgraded(session: Session) -> None:
    features(session, metadata=20)
    for name, level, kind in (
        ("metadata", 0, SAFE),
        ("metadata", 34, UPGRADE),
        ("metadata", 18, UPGRADE),
        ("metadata", 21, SAFE),
        ("metadata", 16, SAFE),
        ("metadata", 16, UNSAFE),
        ("metadata", 20, UPGRADE),
        ("eligible.leader.replicas", 1, UPGRADE),
        ("group", 2, UPGRADE),
        ("group", 1, SAFE),
        ("unknown", 1, UPGRADE),
        ("group", 1, 7),
    ):
        update(session, (name, level, kind))
    update(session, ("metadata", 18, SAFE))
    features(session, metadata=18)
    update(session, ("metadata", 23, UPGRADE), ("eligible.leader.replicas", 1, UPGRADE), ("transaction", 2, UPGRADE))
    features(session, metadata=23, transaction=2)
    update(session, ("metadata", 22, SAFE))
    update(session, ("transaction", 1, SAFE), version=1)
    features(session, transaction=1)
    update(session, ("metadata", 33, UPGRADE))
    features(session, metadata=33)
    update(session, ("metadata", 31, SAFE))


# -- ConsumerIntegrationTest.testAsyncConsumerWithConsumerProtocolDisabled ---------------------------------------------


@case(WITHOUT_GROUPS)
def groups_whose_feature_is_disabled(session: Session) -> None:
    topic = "kafka-tests-disabled"
    session.create_topic(topic)
    member: dict[str, Any] = {"member_id": "a" * 22}
    joins = member | {"rebalance_timeout_ms": 1000}
    streams = joins | {name: [] for name in ("active_tasks", "standby_tasks", "warmup_tasks", "client_tags")}
    for api, group, fields in (
        ("ConsumerGroupHeartbeat", "consumer", joins | {"subscribed_topic_names": [topic], "topic_partitions": []}),
        ("ShareGroupHeartbeat", "share", member | {"subscribed_topic_names": [topic]}),
        ("StreamsGroupHeartbeat", "streams", streams | {"topology": {"epoch": 1}, "process_id": "p"}),
    ):
        session.call(request(api, group_id=f"kafka-tests-{group}", **fields))


# -- TransactionsExpirationTest.testTransactionAfterProducerIdExpiresWithTV1 -------------------------------------------


@case(WITHOUT_GROUPS)
def transactions_of_version_1_keep_their_epoch(session: Session) -> None:
    topic = transaction = "kafka-tests-transaction"
    session.create_topic(topic)
    found = requests.coordinator(transaction, requests.TRANSACTION)
    session.eventually(found, 6, lambda response: not response.coordinators[0].error_code)
    for committed in (False, True):
        begin = requests.init_producer(transaction)
        producer = session.eventually(
            begin, requests.INIT_PRODUCER_ID_VERSION, lambda response: not response.error_code
        )
        session.eventually(
            requests.add_partitions(producer, transaction, topic, 0),
            3,
            lambda response: not response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )
        records = batch(b"v", transactional=True, base_sequence=0, **requests.of_producer(producer))
        producing = produce(11, records, topic=topic, acks=-1)
        producing.transactional_id = transaction
        session.call(producing, 11)
        session.call(requests.end_txn(producer, transaction, committed=committed), 4)
        session.eventually(requests.describe_producers(topic, 0), 0, partial(_is_over, epoch=producer.producer_epoch))


def _is_over(response: Any, epoch: int) -> bool:
    producers = response.topics[0].partitions[0].active_producers
    return [(one.current_txn_start_offset, one.producer_epoch) for one in producers] == [(-1, epoch)]


# -- RackAwareAutoTopicCreationTest, TopicCommandTest.testCreateAlterTopicWithRackAware --------------------------------


def partitions(session: Session, topic: str, count: int) -> list[Any]:
    """Return the partitions of a topic, which has that many with leaders."""
    session.wait_for_leaders(topic)
    (found,) = session.request(requests.metadata(topic, auto_create=True), 12).topics
    assert len(found.partitions) == count, found
    return list(found.partitions)


def distribution(replicas: Iterable[list[int]], racks: Mapping[int, str]) -> dict[str, object]:
    """Return what is not random, as the number of replicas per broker is if partitions have more in one rack."""
    lists = list(replicas)
    found: dict[str, object] = {
        "replicas per partition": Counter(len(set(each)) for each in lists).most_common(),
        "racks per partition": Counter(len({racks[one] for one in each}) for each in lists).most_common(),
        "leaders per rack": sorted(Counter(racks[each[0]] for each in lists).values()),
    }
    if len(lists[0]) % len(set(racks.values())) == 0:
        found["replicas per broker"] = sorted(Counter(one for each in lists for one in each).values())
    return found


@case(RACKS)
def replicas_of_created_and_added_partitions_are_spread_over_racks(session: Session) -> None:
    cluster = request("DescribeCluster")
    session.call(cluster, unordered=("brokers",), only=("brokers",))
    racks = {broker.broker_id: broker.rack for broker in session.request(cluster, 2).brokers}
    automatic, created = "kafka-tests-automatic", "kafka-tests-created"
    session.request(requests.metadata(automatic, auto_create=True), 12)
    session.note("automatic", distribution((one.replica_nodes for one in partitions(session, automatic, 8)), racks))
    for factor in (1, 2, 3, 4):
        topic = f"{created}-{factor}"
        session.create_topic(topic, 8, replication_factor=factor)
        before = partitions(session, topic, 8)
        session.note(f"created {factor}", distribution((one.replica_nodes for one in before), racks))
        added = {"name": topic, "count": 16, "assignments": None}
        session.call(request("CreatePartitions", topics=[added], timeout_ms=requests.TIMEOUT_MS))
        after = [one for one in partitions(session, topic, 16) if one.partition_index >= 8]
        session.note(f"added {factor}", distribution((one.replica_nodes for one in after), racks))


# -- FetchFromFollowerIntegrationTest ----------------------------------------------------------------------------------


@case(RACKS)
def leader_refers_consumers_to_the_replica_in_their_rack(session: Session) -> None:
    topic = "kafka-tests-follower"
    session.create_topic(topic, assignments=[[1, 3]])
    session.request(produce(11, topic=topic, acks=-1), 11, node=1)
    for rack in ("b", "a", "", "c"):
        fetching = fetch(0, topic=topic)
        fetching.rack_id = rack

        def is_referred(response: Any, expected: int = 3 if rack == "b" else -1) -> bool:
            return fetched(response).preferred_read_replica == expected

        session.eventually(fetching, 12, is_referred, node=1)
    session.eventually(fetch(0, topic=topic), 12, lambda response: bool(fetched(response).records), node=3)
    session.call(produce(11, topic=topic, acks=-1), 11, node=3)  # the response names the leader, with its rack


# -- TopicCommandTest.testDescribeUnderReplicatedPartitionsWhenReassignmentIsInProgress --------------------------------


@case(SLOW)
def throttled_reassignment_is_in_progress_until_the_throttle_is_removed(session: Session) -> None:
    topic = "kafka-tests-moved"
    session.create_topic(topic, assignments=[[1]])
    for _ in range(3):
        assert error_codes(session.request(produce(11, topic=topic, acks=-1), 11)) == []
    throttle(session, topic, "1", "*")
    moved = {"name": topic, "partitions": [{"partition_index": 0, "replicas": [2]}]}
    session.call(request("AlterPartitionReassignments", topics=[moved]), 1)
    ongoing = request("ListPartitionReassignments", topics=None)
    session.eventually(ongoing, 0, lambda response: bool(response.topics))
    wanted = requests.metadata(topic, auto_create=True)
    session.eventually(wanted, 12, lambda response: len(response.topics[0].partitions[0].replica_nodes) == 2)
    session.call(produce(11, topic=topic, acks=-1), 11)
    throttle(session, topic, None, None)
    session.eventually(ongoing, 0, lambda response: not response.topics)
    session.eventually(
        wanted, 12, lambda response: response.topics[0].partitions[0].replica_nodes == [2], only=("topics",)
    )


def throttle(session: Session, topic: str, rate: str | None, replicas: str | None) -> None:
    roles = [f"{role}.replication.throttled" for role in ("leader", "follower")]
    for node_id in (1, 2, 3):
        changes = config_changes(BROKER, str(node_id), {f"{role}.rate": rate for role in roles})
        assert error_codes(session.request(changes, 1, node=node_id)) == []
    changes = config_changes(TOPIC, topic, {f"{role}.replicas": replicas for role in roles})
    session.call(changes, 1)
