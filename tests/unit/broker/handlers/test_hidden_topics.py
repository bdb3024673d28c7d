"""Topics that a client is not authorized to use or describe: error codes and hidden names."""

from typing import Any

import pytest

from sluice.broker.security.acl.acl import CLUSTER_NAME, Acl, AclOperation, AclPermissionType, ResourceType
from sluice.protocol.errors import ErrorCode
from tests.support.acls import acl, alice, secured_broker
from tests.support.consumer_groups import AT_ONCE, ConsumerMember
from tests.support.messages import request
from tests.support.virtual_broker import VirtualBroker

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
UNKNOWN_ID = b"?" * 16


def broker_with(*entries: Acl) -> VirtualBroker:
    broker = secured_broker(AT_ONCE)
    broker.topic()
    broker.topic("secret")
    broker.broker.cluster.acls.create(entries)
    return broker


# -- DeleteTopics ------------------------------------------------------------------------------------------------------

DELETE_T, DESCRIBE_T = acl(AclOperation.DELETE), acl(AclOperation.DESCRIBE)
DESCRIBE_NONE = acl(AclOperation.DESCRIBE, name="none")
DELETE_ALL = acl(AclOperation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME)


def deleted(broker: VirtualBroker, *targets: str | bytes) -> list[tuple[str | None, bytes, int, str | None]]:
    """Delete by names and ids as alice; return name, id, error and message of each result."""
    states = [{"name": target} if isinstance(target, str) else {"topic_id": target} for target in targets]
    response = alice(broker).call(request("DeleteTopics", topics=states, timeout_ms=1000), 6)
    return [(result.name, result.topic_id, result.error_code, result.error_message) for result in response.responses]


DELETIONS = {
    "no ACL": ([], "t", (DENIED, "Topic authorization failed.")),
    "no ACL and unknown topic": ([], "none", (DENIED, "Topic authorization failed.")),
    "DESCRIBE on the topic": ([DESCRIBE_T], "t", (DENIED, "Topic authorization failed.")),
    "DESCRIBE on an unknown topic": ([DESCRIBE_NONE], "none", (UNKNOWN, UNKNOWN.message)),
    "DELETE on the topic": ([DELETE_T], "t", (0, None)),
    "DELETE on the cluster": ([DELETE_ALL], "t", (0, None)),
    "DELETE on the cluster and unknown topic": ([DELETE_ALL], "none", (UNKNOWN, UNKNOWN.message)),
}


@pytest.mark.parametrize(("entries", "name", "expected"), DELETIONS.values(), ids=DELETIONS)
def test_delete_by_name_hides_whether_unauthorized_topics_exist(
    entries: list[Acl], name: str, expected: tuple[int, str | None]
) -> None:
    broker = broker_with(*entries)
    ((_, topic_id, *outcome),) = deleted(broker, name)
    assert tuple(outcome) == expected
    assert (topic_id != bytes(16)) is (expected[0] == 0), "only a deleted topic's id is returned"
    assert ("t" in broker.broker.cluster.topics) is (expected[0] != 0)


def test_delete_by_id_returns_names_of_describable_topics_only() -> None:
    broker = broker_with(DESCRIBE_T)
    ids = {name: topic.topic_id for name, topic in broker.broker.cluster.topics.items()}
    assert deleted(broker, ids["t"], ids["secret"], UNKNOWN_ID) == [
        ("t", ids["t"], DENIED, DENIED.message),
        (None, ids["secret"], DENIED, DENIED.message),
        (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message),
    ]
    assert sorted(broker.broker.cluster.topics) == ["secret", "t"]


def test_duplicate_name_and_id_of_an_unauthorized_topic_are_not_linked() -> None:
    broker = broker_with(DESCRIBE_T)
    topic_id = broker.broker.cluster.topics["t"].topic_id
    denied = (DENIED, DENIED.message)
    assert deleted(broker, "t", topic_id) == [("t", topic_id, *denied), ("t", bytes(16), *denied)]


# -- CreateTopics, CreatePartitions and AlterConfigs -------------------------------------------------------------------


def create(broker: VirtualBroker, **counts: int) -> Any:
    """Create topics with these partition counts as alice; return the results."""
    requested = [{"name": name, "num_partitions": count, "replication_factor": 1} for name, count in counts.items()]
    return alice(broker).call(request("CreateTopics", topics=requested), 7).topics


def test_only_authorized_topics_are_created() -> None:
    broker = broker_with(acl(AclOperation.CREATE, name="new"))
    topics = create(broker, new=1, other=1, t=1)
    results = [(topic.name, topic.error_code, topic.error_message, topic.topic_config_error_code) for topic in topics]
    assert results == [
        ("new", 0, None, DENIED),
        ("other", DENIED, "Authorization failed.", 0),
        ("t", DENIED, "Authorization failed.", 0),
    ]
    assert (topics[0].num_partitions, topics[0].configs) == (-1, [])
    assert sorted(broker.broker.cluster.topics) == ["new", "secret", "t"]


def test_unauthorized_topics_do_not_count_towards_the_partition_limit() -> None:
    broker = broker_with(acl(AclOperation.CREATE, name="new"))
    assert [topic.error_code for topic in create(broker, new=1, huge=10_000)] == [0, DENIED]


def test_partitions_are_created_only_for_authorized_topics() -> None:
    broker = broker_with(acl(AclOperation.ALTER))
    requested = [{"name": name, "count": 2, "assignments": None} for name in ("t", "secret", "none")]
    response = alice(broker).call(request("CreatePartitions", topics=requested, timeout_ms=1000), 3)
    assert {result.name: (result.error_code, result.error_message) for result in response.results} == {
        "t": (0, None),
        "secret": (DENIED, None),
        "none": (DENIED, None),
    }
    topics = broker.broker.cluster.topics
    assert (len(topics["t"].partitions), len(topics["secret"].partitions)) == (2, 1)


ALTERATIONS = {
    "topic: authorization precedes existence": (2, "none", "x", DENIED),
    "broker: authorization precedes values": (4, "", "x", ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
}


@pytest.mark.parametrize(("kind", "name", "value", "code"), ALTERATIONS.values(), ids=ALTERATIONS)
def test_alter_configs_checks_in_kafkas_order(kind: int, name: str, value: str, code: ErrorCode) -> None:
    config = {"name": "max.message.bytes" if kind == 2 else "message.max.bytes", "value": value}
    resource = {"resource_type": kind, "resource_name": name, "configs": [config]}
    response = alice(broker_with()).call(request("AlterConfigs", resources=[resource]), 2)
    assert response.responses[0].error_code == code


# -- describe APIs -----------------------------------------------------------------------------------------------------


def test_invalid_topic_name_is_reported_before_authorization() -> None:
    requested = [{"name": name, "partition_indexes": [0]} for name in ("t", "secret", "none", "?")]
    response = alice(broker_with(acl(AclOperation.READ))).call(request("DescribeProducers", topics=requested), 0)
    partitions = {topic.name: topic.partitions[0] for topic in response.topics}
    results = {name: (one.error_code, one.error_message) for name, one in partitions.items()}
    rejected = (DENIED, "Topic authorization failed.")
    assert (results["t"], results["secret"], results["none"]) == ((0, None), rejected, rejected)
    assert results["?"][0] == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_configs_of_unauthorized_topics_come_last() -> None:
    requested = [{"resource_type": 2, "resource_name": name} for name in ("secret", "none", "t")]
    response = alice(broker_with(acl(AclOperation.DESCRIBE_CONFIGS))).call(
        request("DescribeConfigs", resources=requested), 4
    )
    results = [(result.resource_name, result.error_code) for result in response.results]
    assert results == [("t", 0), ("secret", DENIED), ("none", DENIED)]


def test_unauthorized_topics_come_last_in_a_page() -> None:
    requested = [{"name": name} for name in ("secret", "none", "t")]
    page = request("DescribeTopicPartitions", topics=requested, response_partition_limit=1)
    response = alice(broker_with(DESCRIBE_T)).call(page, 0)
    results = [(topic.name, topic.error_code, topic.topic_authorized_operations) for topic in response.topics]
    assert results == [("t", 0, 1 << 8), ("none", DENIED, -(2**31)), ("secret", DENIED, -(2**31))]


def test_topic_regex_matches_only_topics_that_the_member_may_describe() -> None:
    every_group = acl(AclOperation.READ, ResourceType.GROUP, "*")
    hidden = acl(AclOperation.DESCRIBE, name="secret", permission_type=AclPermissionType.DENY)
    broker = broker_with(every_group, acl(AclOperation.DESCRIBE, name="*"), hidden)
    member = ConsumerMember(broker, regex="[st].*")
    member.client = alice(broker)
    member.join()
    for _ in range(3):
        assert not member.heartbeat().error_code
    assert member.partitions == {"t": {0}}
