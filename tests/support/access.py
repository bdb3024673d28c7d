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


REQUEST = "the request"
# In the order of API keys.
TABLE = (
    Access("Produce", "", (_topic(WRITE),)),
    Access("Produce", "transactional", (_transactional_id(WRITE, EACH_PARTITION), _topic(WRITE))),
    Access("Fetch", "", (_topic(READ),)),
    Access("Fetch", "by a follower", (_need(TOPIC_DENIED, EACH_PARTITION, (CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)),)),
    Access("ListOffsets", "", (_topic(DESCRIBE),)),
    Access("Metadata", "of some topics", (_topic(DESCRIBE, "the topic"),)),
    Access("Metadata", "of all topics", (_left_out("'t'", "the topic", (DESCRIBE, TOPIC, "t")),)),
    Access(
        "Metadata",
        "that creates a topic",
        (
            _topic(DESCRIBE, "the topic", "new"),
            _need(TOPIC_DENIED, "the topic", (CREATE, CLUSTER, CLUSTER_NAME), (CREATE, TOPIC, "new")),
        ),
    ),
    Access("OffsetCommit", "", (_group(READ, EACH_PARTITION, "simple"), _topic(READ))),
    Access("OffsetFetch", "", (_group(DESCRIBE, "the group"), _topic(DESCRIBE))),
    Access(
        "OffsetFetch",
        "of all topics",
        (_group(DESCRIBE, "the group", "empty"), _left_out("'t'", "the topic", (DESCRIBE, TOPIC, "t"))),
    ),
    Access("FindCoordinator", "of a group", (_group(DESCRIBE, "the key"),)),
    Access("FindCoordinator", "of a transactional id", (_transactional_id(DESCRIBE, "the key"),)),
    Access("FindCoordinator", "of a share partition", (_cluster(CLUSTER_ACTION, "the key"),)),
    Access("JoinGroup", "", (_group(READ, REQUEST),)),
    Access("Heartbeat", "", (_group(READ, REQUEST),)),
    Access("LeaveGroup", "", (_group(READ, REQUEST),)),
    Access("SyncGroup", "", (_group(READ, REQUEST),)),
    Access("DescribeGroups", "", (_group(DESCRIBE, "the group"),)),
    Access(
        "ListGroups",
        "",
        (_left_out("'group'", "the group", (DESCRIBE, CLUSTER, CLUSTER_NAME), (DESCRIBE, GROUP, "group")),),
    ),
    Access("SaslHandshake", "", ()),
    Access("ApiVersions", "", ()),
    Access(
        "CreateTopics",
        "",
        (
            _need(TOPIC_DENIED, "the topic", (CREATE, CLUSTER, CLUSTER_NAME), (CREATE, TOPIC, "new")),
            _topic(DESCRIBE_CONFIGS, "the new topic's configs, which are left out", "new"),
        ),
    ),
    Access(
        "DeleteTopics", "", (_need(TOPIC_DENIED, "the topic", (DELETE, CLUSTER, CLUSTER_NAME), (DELETE, TOPIC, "t")),)
    ),
    Access("DeleteRecords", "", (_topic(DELETE),)),
    Access("InitProducerId", "transactional", (_transactional_id(WRITE, REQUEST),)),
    Access(
        "InitProducerId",
        "idempotent",
        (_need(CLUSTER_DENIED, REQUEST, (IDEMPOTENT_WRITE, CLUSTER, CLUSTER_NAME), (WRITE, TOPIC, "some")),),
    ),
    Access(
        "OffsetForLeaderEpoch",
        "",
        (_need(TOPIC_DENIED, EACH_PARTITION, (CLUSTER_ACTION, CLUSTER, CLUSTER_NAME), (DESCRIBE, TOPIC, "t")),),
    ),
    Access("AddPartitionsToTxn", "by a client", (_transactional_id(WRITE, EACH_PARTITION), _topic(WRITE))),
    Access("AddPartitionsToTxn", "by a broker", (_cluster(CLUSTER_ACTION),)),
    Access("AddOffsetsToTxn", "", (_transactional_id(WRITE, REQUEST), _group(READ, REQUEST, "empty"))),
    Access("EndTxn", "", (_transactional_id(WRITE, REQUEST),)),
    Access(
        "WriteTxnMarkers",
        "",
        (
            _need(
                CLUSTER_DENIED, EACH_PARTITION, (ALTER, CLUSTER, CLUSTER_NAME), (CLUSTER_ACTION, CLUSTER, CLUSTER_NAME)
            ),
        ),
    ),
    Access(
        "TxnOffsetCommit",
        "",
        (_transactional_id(WRITE, EACH_PARTITION), _group(READ, EACH_PARTITION, "empty"), _topic(READ)),
    ),
    Access("DescribeAcls", "", (_cluster(DESCRIBE),)),
    Access("CreateAcls", "", (_cluster(ALTER, "each entry"),)),
    Access("DeleteAcls", "", (_cluster(ALTER, "each filter"),)),
    Access("DescribeConfigs", "of a topic", (_topic(DESCRIBE_CONFIGS, "the resource"),)),
    Access("DescribeConfigs", "of a group", (_group(DESCRIBE_CONFIGS, "the resource"),)),
    Access("DescribeConfigs", "of anything else", (_cluster(DESCRIBE_CONFIGS, "the resource"),)),
    Access("AlterConfigs", "of a topic", (_topic(ALTER_CONFIGS, "the resource"),)),
    Access("AlterConfigs", "of a group", (_group(ALTER_CONFIGS, "the resource"),)),
    Access("AlterConfigs", "of anything else", (_cluster(ALTER_CONFIGS, "the resource"),)),
    Access("AlterReplicaLogDirs", "", (_cluster(ALTER, EACH_PARTITION),)),
    Access("DescribeLogDirs", "", (_cluster(DESCRIBE),)),
    Access("SaslAuthenticate", "", ()),
    Access("CreatePartitions", "", (_topic(ALTER, "the topic"),)),
    Access("DeleteGroups", "", (_group(DELETE, "the group", "empty"),)),
    Access("ElectLeaders", "", (_cluster(ALTER),)),
    Access("IncrementalAlterConfigs", "of a topic", (_topic(ALTER_CONFIGS, "the resource"),)),
    Access("IncrementalAlterConfigs", "of a group", (_group(ALTER_CONFIGS, "the resource"),)),
    Access("IncrementalAlterConfigs", "of anything else", (_cluster(ALTER_CONFIGS, "the resource"),)),
    Access("AlterPartitionReassignments", "", (_cluster(ALTER, "the request and each partition"),)),
    Access("ListPartitionReassignments", "", (_cluster(DESCRIBE),)),
    Access("OffsetDelete", "", (_group(DELETE, REQUEST, "empty"), _topic(READ))),
    Access("DescribeClientQuotas", "", (_cluster(DESCRIBE_CONFIGS),)),
    Access("AlterClientQuotas", "", (_cluster(ALTER_CONFIGS, "each entity"),)),
    Access("DescribeUserScramCredentials", "", (_cluster(DESCRIBE),)),
    Access("AlterUserScramCredentials", "", (_cluster(ALTER, "each user"),)),
    Access("DescribeQuorum", "", (_cluster(DESCRIBE),)),
    Access("UpdateFeatures", "", (_cluster(ALTER),)),
    Access("DescribeCluster", "", ()),
    Access("DescribeProducers", "", (_topic(READ),)),
    Access(
        "DescribeTransactions",
        "",
        (_transactional_id(DESCRIBE, "the transactional id"), _left_out("'t'", "the topic", (DESCRIBE, TOPIC, "t"))),
    ),
    Access("ListTransactions", "", (_left_out("'tx'", "the transactional id", (DESCRIBE, TRANSACTIONAL_ID, "tx")),)),
    Access("ConsumerGroupHeartbeat", "", (_group(READ, REQUEST, "consumers"), _topic(DESCRIBE, REQUEST))),
    Access(
        "ConsumerGroupDescribe",
        "",
        (_group(DESCRIBE, "the group", "members"), _topic(DESCRIBE, "the group, if a member has the topic")),
    ),
    Access("GetTelemetrySubscriptions", "", ()),
    Access("PushTelemetry", "", ()),
    Access("ListConfigResources", "", (_cluster(DESCRIBE_CONFIGS),)),
    Access("UnregisterBroker", "", (_cluster(ALTER),)),
    Access("DescribeTopicPartitions", "of some topics", (_topic(DESCRIBE, "the topic"),)),
    Access("DescribeTopicPartitions", "of all topics", (_left_out("'t'", "the topic", (DESCRIBE, TOPIC, "t")),)),
    Access("StreamsGroupHeartbeat", "", (_group(READ, REQUEST, "streams"), _topic(DESCRIBE, REQUEST))),
    Access(
        "StreamsGroupDescribe",
        "",
        (_group(DESCRIBE, "the group", "members of streams"), _topic(DESCRIBE, "the group, if its topology has it")),
    ),
    Access("StreamsGroupTopologyDescriptionUpdate", "", (_group(READ, REQUEST, "streams"),)),
    Access("ShareGroupHeartbeat", "", (_group(READ, REQUEST, "share"), _topic(DESCRIBE, REQUEST))),
    Access(
        "ShareGroupDescribe",
        "",
        (_group(DESCRIBE, "the group", "share"), _topic(DESCRIBE, "the group, if a member is assigned the topic")),
    ),
    Access("ShareFetch", "", (_group(READ, REQUEST, "share"), _topic(READ))),
    Access("ShareAcknowledge", "", (_group(READ, REQUEST, "share"), _topic(READ))),
    Access("DescribeShareGroupOffsets", "of some topics", (_group(DESCRIBE, "the group", "share"), _topic(DESCRIBE))),
    Access(
        "DescribeShareGroupOffsets",
        "of all topics",
        (_group(DESCRIBE, "the group", "share"), _left_out("'t'", "the topic", (DESCRIBE, TOPIC, "t"))),
    ),
    Access("AlterShareGroupOffsets", "", (_group(READ, REQUEST, "empty-share"), _topic(READ))),
    Access("DeleteShareGroupOffsets", "", (_group(DELETE, REQUEST, "empty-share"), _topic(READ, "the topic"))),
)
