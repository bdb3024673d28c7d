"""Every API key of Apache Kafka 4.4, and why sluice does not serve some of them.

Names and versions of client APIs are those that kafka-clients 4.4.0 declares (the vectors `api_versions-4.4.0.jsonl`);
`test_api_coverage.py` compares them. APIs between brokers are listed without versions.
"""

from typing import NamedTuple

_ZOOKEEPER = "between brokers; Kafka 4.0 removed it with ZooKeeper"
_CONTROLLERS = "between brokers and KRaft controllers; the controller of a sluice cluster is in the same process"
_TOKENS = "delegation tokens are not implemented"
_SHARE_STATE = "between brokers, for share groups"
_QUORUM = "a sluice cluster has no controller quorum"


class KafkaApi(NamedTuple):
    """An API of Kafka 4.4. `versions` is "" for APIs between brokers; `not_served` is "" for the APIs served here."""

    api_key: int
    name: str
    versions: str
    not_served: str = ""


KAFKA_APIS = (
    KafkaApi(0, "Produce", "3-13"),
    KafkaApi(1, "Fetch", "4-18"),
    KafkaApi(2, "ListOffsets", "1-11"),
    KafkaApi(3, "Metadata", "0-13"),
    KafkaApi(4, "LeaderAndIsr", "", _ZOOKEEPER),
    KafkaApi(5, "StopReplica", "", _ZOOKEEPER),
    KafkaApi(6, "UpdateMetadata", "", _ZOOKEEPER),
    KafkaApi(7, "ControlledShutdown", "", _ZOOKEEPER),
    KafkaApi(8, "OffsetCommit", "2-10"),
    KafkaApi(9, "OffsetFetch", "1-10"),
    KafkaApi(10, "FindCoordinator", "0-6"),
    KafkaApi(11, "JoinGroup", "0-9"),
    KafkaApi(12, "Heartbeat", "0-4"),
    KafkaApi(13, "LeaveGroup", "0-5"),
    KafkaApi(14, "SyncGroup", "0-5"),
    KafkaApi(15, "DescribeGroups", "0-6"),
    KafkaApi(16, "ListGroups", "0-5"),
    KafkaApi(17, "SaslHandshake", "0-1"),
    KafkaApi(18, "ApiVersions", "0-5"),
    KafkaApi(19, "CreateTopics", "2-7"),
    KafkaApi(20, "DeleteTopics", "1-6"),
    KafkaApi(21, "DeleteRecords", "0-2"),
    KafkaApi(22, "InitProducerId", "0-5"),
    KafkaApi(23, "OffsetForLeaderEpoch", "2-4"),
    KafkaApi(24, "AddPartitionsToTxn", "0-5"),
    KafkaApi(25, "AddOffsetsToTxn", "0-4"),
    KafkaApi(26, "EndTxn", "0-5"),
    KafkaApi(27, "WriteTxnMarkers", "1-2"),
    KafkaApi(28, "TxnOffsetCommit", "0-6"),
    KafkaApi(29, "DescribeAcls", "1-3"),
    KafkaApi(30, "CreateAcls", "1-3"),
    KafkaApi(31, "DeleteAcls", "1-3"),
    KafkaApi(32, "DescribeConfigs", "1-4"),
    KafkaApi(33, "AlterConfigs", "0-2"),
    KafkaApi(34, "AlterReplicaLogDirs", "1-2"),
    KafkaApi(35, "DescribeLogDirs", "1-5"),
    KafkaApi(36, "SaslAuthenticate", "0-2"),
    KafkaApi(37, "CreatePartitions", "0-3"),
    KafkaApi(38, "CreateDelegationToken", "1-3", _TOKENS),
    KafkaApi(39, "RenewDelegationToken", "1-2", _TOKENS),
    KafkaApi(40, "ExpireDelegationToken", "1-2", _TOKENS),
    KafkaApi(41, "DescribeDelegationToken", "1-3", _TOKENS),
    KafkaApi(42, "DeleteGroups", "0-3"),
    KafkaApi(43, "ElectLeaders", "0-2"),
    KafkaApi(44, "IncrementalAlterConfigs", "0-1"),
    KafkaApi(45, "AlterPartitionReassignments", "0-1"),
    KafkaApi(46, "ListPartitionReassignments", "0"),
    KafkaApi(47, "OffsetDelete", "0"),
    KafkaApi(48, "DescribeClientQuotas", "0-1"),
    KafkaApi(49, "AlterClientQuotas", "0-1"),
    KafkaApi(50, "DescribeUserScramCredentials", "0"),
    KafkaApi(51, "AlterUserScramCredentials", "0"),
    KafkaApi(52, "Vote", "", _CONTROLLERS),
    KafkaApi(53, "BeginQuorumEpoch", "", _CONTROLLERS),
    KafkaApi(54, "EndQuorumEpoch", "", _CONTROLLERS),
    KafkaApi(55, "DescribeQuorum", "0-2"),
    KafkaApi(56, "AlterPartition", "", _CONTROLLERS),
    KafkaApi(57, "UpdateFeatures", "0-2"),
    KafkaApi(58, "Envelope", "", _CONTROLLERS),
    KafkaApi(59, "FetchSnapshot", "", _CONTROLLERS),
    KafkaApi(60, "DescribeCluster", "0-2"),
    KafkaApi(61, "DescribeProducers", "0"),
    KafkaApi(62, "BrokerRegistration", "", _CONTROLLERS),
    KafkaApi(63, "BrokerHeartbeat", "", _CONTROLLERS),
    KafkaApi(64, "UnregisterBroker", "0"),
    KafkaApi(65, "DescribeTransactions", "0"),
    KafkaApi(66, "ListTransactions", "0-2"),
    KafkaApi(67, "AllocateProducerIds", "", _CONTROLLERS),
    KafkaApi(68, "ConsumerGroupHeartbeat", "0-1"),
    KafkaApi(69, "ConsumerGroupDescribe", "0-1"),
    KafkaApi(70, "ControllerRegistration", "", _CONTROLLERS),
    KafkaApi(71, "GetTelemetrySubscriptions", "0"),
    KafkaApi(72, "PushTelemetry", "0"),
    KafkaApi(73, "AssignReplicasToDirs", "", _CONTROLLERS),
    KafkaApi(74, "ListConfigResources", "0-1"),
    KafkaApi(75, "DescribeTopicPartitions", "0"),
    KafkaApi(76, "ShareGroupHeartbeat", "1"),
    KafkaApi(77, "ShareGroupDescribe", "1"),
    KafkaApi(78, "ShareFetch", "1-2"),
    KafkaApi(79, "ShareAcknowledge", "1-2"),
    KafkaApi(80, "AddRaftVoter", "0-1", _QUORUM),
    KafkaApi(81, "RemoveRaftVoter", "0", _QUORUM),
    KafkaApi(82, "UpdateRaftVoter", "", _CONTROLLERS),
    KafkaApi(83, "InitializeShareGroupState", "", _SHARE_STATE),
    KafkaApi(84, "ReadShareGroupState", "", _SHARE_STATE),
    KafkaApi(85, "WriteShareGroupState", "", _SHARE_STATE),
    KafkaApi(86, "DeleteShareGroupState", "", _SHARE_STATE),
    KafkaApi(87, "ReadShareGroupStateSummary", "", _SHARE_STATE),
    KafkaApi(88, "StreamsGroupHeartbeat", "0-1"),
    KafkaApi(89, "StreamsGroupDescribe", "0-1"),
    KafkaApi(90, "DescribeShareGroupOffsets", "0-1"),
    KafkaApi(91, "AlterShareGroupOffsets", "0"),
    KafkaApi(92, "DeleteShareGroupOffsets", "0"),
    KafkaApi(93, "StreamsGroupTopologyDescriptionUpdate", "0"),
    KafkaApi(94, "UnregisterController", "0", _QUORUM),
)
