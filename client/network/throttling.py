"""From which version on a client that is told a throttle time waits by itself (KIP-219): the broker answers those
versions before it makes them wait. Kafka's `AbstractResponse.shouldClientThrottle`; an API that is not here never does.
"""

from sluice.protocol.apis import API_KEYS

_SINCE = {
    0: "IncrementalAlterConfigs OffsetDelete ElectLeaders AlterPartitionReassignments ListPartitionReassignments "
    "DescribeUserScramCredentials AlterUserScramCredentials DescribeTopicPartitions UnregisterBroker",
    1: "DeleteRecords InitProducerId AddPartitionsToTxn AddOffsetsToTxn EndTxn TxnOffsetCommit DescribeAcls CreateAcls "
    "DeleteAcls AlterConfigs AlterReplicaLogDirs DescribeLogDirs CreatePartitions DeleteGroups CreateDelegationToken "
    "RenewDelegationToken ExpireDelegationToken DescribeDelegationToken",
    2: "FindCoordinator Heartbeat LeaveGroup SyncGroup DescribeGroups ListGroups ApiVersions DeleteTopics "
    "DescribeConfigs",
    3: "ListOffsets JoinGroup CreateTopics",
    4: "OffsetCommit OffsetFetch",
    6: "Produce Metadata",
    8: "Fetch",
}
_SINCE_BY_NAME = {name: version for version, names in _SINCE.items() for name in names.split()}
_NEVER = 0x7FFF  # beyond every version
# API key -> the first version whose clients wait.
THROTTLES_SINCE: dict[int, int] = {key: _SINCE_BY_NAME.get(api.name, _NEVER) for key, api in API_KEYS.items()}
