"""The required ACL and the error without it, for each API, as a table.

tests/unit/broker/handlers/test_access.py checks the handlers against it, and docs/acls.md has it.
"""

from typing import NamedTuple

from sluice.broker.security.acl.acl import CLUSTER_NAME, Acl, AclOperation, ResourceType
from sluice.protocol.errors import ErrorCode
from tests.support.acls import acl

CLUSTER, GROUP, TOPIC = ResourceType.CLUSTER, ResourceType.GROUP, ResourceType.TOPIC
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
READ, WRITE, CREATE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE
ALTER, DESCRIBE, CLUSTER_ACTION = AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
IDEMPOTENT_WRITE = AclOperation.IDEMPOTENT_WRITE
CLUSTER_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
GROUP_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
TRANSACTIONAL_ID_DENIED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
EACH_PARTITION = "each partition"


class Need(NamedTuple):
    """One permission: an ACL, or one of several, and the response without any of them."""

    anyone: tuple[Acl, ...]
    code: ErrorCode  # NONE: the resource is omitted
    where: str  # has the error, or is omitted
    left_out: str = ""  # text that the response must not contain


class Access(NamedTuple):
    """One API, or one use of it, with all required permissions."""

    api: str
    use: str
    needs: tuple[Need, ...]


def _need(code: ErrorCode, where: str, *anyone: tuple[AclOperation, ResourceType, str]) -> Need:
    return Need(tuple(acl(*one) for one in anyone), code, where)


def _left_out(name: str, what: str, *anyone: tuple[AclOperation, ResourceType, str]) -> Need:
    return Need(tuple(acl(*one) for one in anyone), ErrorCode.NONE, what, name)


def _topic(operation: AclOperation, where: str = EACH_PARTITION, name: str = "t") -> Need:
    return _need(TOPIC_DENIED, where, (operation, TOPIC, name))


def _group(operation: AclOperation, where: str, name: str = "group") -> Need:
    return _need(GROUP_DENIED, where, (operation, GROUP, name))


def _transactional_id(operation: AclOperation, where: str) -> Need:
    return _need(TRANSACTIONAL_ID_DENIED, where, (operation, TRANSACTIONAL_ID, "tx"))


def _cluster(operation: AclOperation, where: str = "the request") -> Need:
    return _need(CLUSTER_DENIED, where, (operation, CLUSTER, CLUSTER_NAME))


def _access(api: str, *needs: Need, use: str = "") -> Access:
    return Access(api, use, needs)


REQUEST = "the request"
# In the order of API keys.
TABLE = (
    _access("Produce", _topic(WRITE)),
    _access("Produce", _transactional_id(WRITE, EACH_PARTITION), _topic(WRITE), use="transactional"),
    _access("Fetch", _topic(READ)),
    _access("Fetch", _need(TOPIC_DENIED, EACH_PARTITION, (CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)), use="by a follower"),
    _access("ListOffsets", _topic(DESCRIBE)),
    _access("Metadata", _topic(DESCRIBE, "the topic"), use="of some topics"),
    _access("Metadata", _left_out("'t'", "the topic", (DESCRIBE, TOPIC, "t")), use="of all topics"),
    _access(
        "Metadata",
        _topic(DESCRIBE, "the topic", "new"),
        _need(TOPIC_DENIED, "the topic", (CREATE, CLUSTER, CLUSTER_NAME), (CREATE, TOPIC, "new")),
        use="that creates a topic",
    ),
    _access("OffsetCommit", _group(READ, EACH_PARTITION, "simple"), _topic(READ)),
    _access("OffsetFetch", _group(DESCRIBE, "the group"), _topic(DESCRIBE)),
    _access(
        "OffsetFetch",
        _group(DESCRIBE, "the group", "empty"),
        _left_out("'t'", "the topic", (DESCRIBE, TOPIC, "t")),
        use="of all topics",
    ),
    _access("FindCoordinator", _group(DESCRIBE, "the key"), use="of a group"),
    _access("FindCoordinator", _transactional_id(DESCRIBE, "the key"), use="of a transactional id"),
    _access("FindCoordinator", _cluster(CLUSTER_ACTION, "the key"), use="of a share partition"),
    _access("JoinGroup", _group(READ, REQUEST)),
    _access("Heartbeat", _group(READ, REQUEST)),
    _access("LeaveGroup", _group(READ, REQUEST)),
    _access("SyncGroup", _group(READ, REQUEST)),
    _access("DescribeGroups", _group(DESCRIBE, "the group")),
    _access(
        "ListGroups", _left_out("'group'", "the group", (DESCRIBE, CLUSTER, CLUSTER_NAME), (DESCRIBE, GROUP, "group"))
    ),
    _access("SaslHandshake"),
    _access("ApiVersions"),
    _access(
        "CreateTopics",
        _need(TOPIC_DENIED, "the topic", (CREATE, CLUSTER, CLUSTER_NAME), (CREATE, TOPIC, "new")),
        _topic(DESCRIBE_CONFIGS, "the new topic's configs, which are left out", "new"),
    ),
    _access("DeleteTopics", _need(TOPIC_DENIED, "the topic", (DELETE, CLUSTER, CLUSTER_NAME), (DELETE, TOPIC, "t"))),
    _access("DeleteRecords", _topic(DELETE)),
    _access("InitProducerId", _transactional_id(WRITE, REQUEST), use="transactional"),
    _access(
        "InitProducerId",
        _need(CLUSTER_DENIED, REQUEST, (IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME), (WRITE, TOPIC, "some")),
        use="idempotent",
    ),
    _access(
        "OffsetForLeaderEpoch",
        _need(TOPIC_DENIED, EACH_PARTITION, (CLUSTER_ACTION, CLUSTER, CLUSTER_NAME), (DESCRIBE, TOPIC, "t")),
    ),
    _access("AddPartitionsToTxn", _transactional_id(WRITE, EACH_PARTITION), _topic(WRITE), use="by a client"),
    _access("AddPartitionsToTxn", _cluster(CLUSTER_ACTION), use="by a broker"),
    _access("AddOffsetsToTxn", _transactional_id(WRITE, REQUEST), _group(READ, REQUEST, "empty")),
    _access("EndTxn", _transactional_id(WRITE, REQUEST)),
    _access(
        "WriteTxnMarkers",
        _need(CLUSTER_DENIED, EACH_PARTITION, (ALTER, CLUSTER, CLUSTER_NAME), (CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)),
    ),
    _access(
        "TxnOffsetCommit", _transactional_id(WRITE, EACH_PARTITION), _group(READ, EACH_PARTITION, "empty"), _topic(READ)
    ),
    _access("DescribeAcls", _cluster(DESCRIBE)),
    _access("CreateAcls", _cluster(ALTER, "each entry")),
    _access("DeleteAcls", _cluster(ALTER, "each filter")),
    _access("DescribeConfigs", _topic(DESCRIBE_CONFIGS, "the resource"), use="of a topic"),
    _access("DescribeConfigs", _group(DESCRIBE_CONFIGS, "the resource"), use="of a group"),
    _access("DescribeConfigs", _cluster(DESCRIBE_CONFIGS, "the resource"), use="of anything else"),
    _access("AlterConfigs", _topic(ALTER_CONFIGS, "the resource"), use="of a topic"),
    _access("AlterConfigs", _group(ALTER_CONFIGS, "the resource"), use="of a group"),
    _access("AlterConfigs", _cluster(ALTER_CONFIGS, "the resource"), use="of anything else"),
    _access("AlterReplicaLogDirs", _cluster(ALTER, EACH_PARTITION)),
    _access("DescribeLogDirs", _cluster(DESCRIBE)),
    _access("SaslAuthenticate"),
    _access("CreatePartitions", _topic(ALTER, "the topic")),
    _access("DeleteGroups", _group(DELETE, "the group", "empty")),
    _access("ElectLeaders", _cluster(ALTER)),
    _access("IncrementalAlterConfigs", _topic(ALTER_CONFIGS, "the resource"), use="of a topic"),
    _access("IncrementalAlterConfigs", _group(ALTER_CONFIGS, "the resource"), use="of a group"),
    _access("IncrementalAlterConfigs", _cluster(ALTER_CONFIGS, "the resource"), use="of anything else"),
    _access("AlterPartitionReassignments", _cluster(ALTER, "the request and each partition")),
    _access("ListPartitionReassignments", _cluster(DESCRIBE)),
    _access("OffsetDelete", _group(DELETE, REQUEST, "empty"), _topic(READ)),
    _access("DescribeClientQuotas", _cluster(DESCRIBE_CONFIGS)),
    _access("AlterClientQuotas", _cluster(ALTER_CONFIGS, "each entity")),
    _access("DescribeUserScramCredentials", _cluster(DESCRIBE)),
    _access("AlterUserScramCredentials", _cluster(ALTER, "each user")),
    _access("DescribeQuorum", _cluster(DESCRIBE)),
    _access("UpdateFeatures", _cluster(ALTER)),
    _access("DescribeCluster"),
    _access("DescribeProducers", _topic(READ)),
    _access(
        "DescribeTransactions",
        _transactional_id(DESCRIBE, "the transactional id"),
        _left_out("'t'", "the topic", (DESCRIBE, TOPIC, "t")),
    ),
    _access("ListTransactions", _left_out("'tx'", "the transactional id", (DESCRIBE, TRANSACTIONAL_ID, "tx"))),
    _access("ConsumerGroupHeartbeat", _group(READ, REQUEST, "consumers"), _topic(DESCRIBE, REQUEST)),
    _access(
        "ConsumerGroupDescribe",
        _group(DESCRIBE, "the group", "members"),
        _topic(DESCRIBE, "the group, if a member has the topic"),
    ),
    _access("GetTelemetrySubscriptions"),
    _access("PushTelemetry"),
    _access("ListConfigResources", _cluster(DESCRIBE_CONFIGS)),
    _access("UnregisterBroker", _cluster(ALTER)),
    _access("DescribeTopicPartitions", _topic(DESCRIBE, "the topic"), use="of some topics"),
    _access("DescribeTopicPartitions", _left_out("'t'", "the topic", (DESCRIBE, TOPIC, "t")), use="of all topics"),
    _access("StreamsGroupHeartbeat", _group(READ, REQUEST, "streams"), _topic(DESCRIBE, REQUEST)),
    _access(
        "StreamsGroupDescribe",
        _group(DESCRIBE, "the group", "members of streams"),
        _topic(DESCRIBE, "the group, if its topology has it"),
    ),
    _access("StreamsGroupTopologyDescriptionUpdate", _group(READ, REQUEST, "streams")),
    _access("ShareGroupHeartbeat", _group(READ, REQUEST, "share"), _topic(DESCRIBE, REQUEST)),
    _access(
        "ShareGroupDescribe",
        _group(DESCRIBE, "the group", "share"),
        _topic(DESCRIBE, "the group, if a member is assigned the topic"),
    ),
    _access("ShareFetch", _group(READ, REQUEST, "share"), _topic(READ)),
    _access("ShareAcknowledge", _group(READ, REQUEST, "share"), _topic(READ)),
    _access(
        "DescribeShareGroupOffsets", _group(DESCRIBE, "the group", "share"), _topic(DESCRIBE), use="of some topics"
    ),
    _access(
        "DescribeShareGroupOffsets",
        _group(DESCRIBE, "the group", "share"),
        _left_out("'t'", "the topic", (DESCRIBE, TOPIC, "t")),
        use="of all topics",
    ),
    _access("AlterShareGroupOffsets", _group(READ, REQUEST, "empty-share"), _topic(READ)),
    _access("DeleteShareGroupOffsets", _group(DELETE, REQUEST, "empty-share"), _topic(READ, "the topic")),
)
