"""The registry: which APIs are served, in which versions. ApiVersions is made from it.

One module per API, the twin of the module of the same name in `sluice.protocol.apis`, with a function `handle`. It is
loaded with the first request of its API: knowing what is served costs no import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, cast

from sluice.protocol.apis import API_KEYS

if TYPE_CHECKING:
    from sluice.broker.handlers.services import Handle


class Handler(NamedTuple):
    """One API as it is served: in which versions, and in which folder of `handlers` its module is."""

    api_key: int
    min_version: int
    max_version: int
    folder: str

    def load(self) -> "Handle":
        """The function that handles its requests.

        It takes what the decoder of its API gives; the type checker cannot see that both are of one API.
        """
        handle = import_module(f"sluice.broker.handlers.{self.folder}.{API_KEYS[self.api_key].module}").handle
        return cast("Handle", handle)


HANDLERS = {
    handler.api_key: handler
    for handler in (
        Handler(0, 0, 13, "records"),  # Produce
        Handler(1, 0, 18, "records"),  # Fetch
        Handler(2, 0, 11, "records"),  # ListOffsets
        Handler(3, 0, 13, "topics"),  # Metadata
        Handler(8, 0, 10, "groups"),  # OffsetCommit
        Handler(9, 0, 10, "groups"),  # OffsetFetch
        Handler(10, 0, 6, "groups"),  # FindCoordinator
        Handler(11, 0, 9, "groups"),  # JoinGroup
        Handler(12, 0, 4, "groups"),  # Heartbeat
        Handler(13, 0, 5, "groups"),  # LeaveGroup
        Handler(14, 0, 5, "groups"),  # SyncGroup
        Handler(15, 0, 6, "groups"),  # DescribeGroups
        Handler(16, 0, 5, "groups"),  # ListGroups
        Handler(17, 0, 1, "security"),  # SaslHandshake
        Handler(18, 0, 5, "cluster"),  # ApiVersions
        Handler(19, 0, 7, "topics"),  # CreateTopics
        Handler(20, 0, 6, "topics"),  # DeleteTopics
        Handler(21, 0, 2, "records"),  # DeleteRecords
        Handler(22, 0, 5, "transactions"),  # InitProducerId; 6 is two-phase commit's, and unstable
        Handler(23, 0, 4, "records"),  # OffsetForLeaderEpoch
        Handler(24, 0, 5, "transactions"),  # AddPartitionsToTxn
        Handler(25, 0, 4, "transactions"),  # AddOffsetsToTxn
        Handler(26, 0, 5, "transactions"),  # EndTxn
        Handler(27, 0, 2, "transactions"),  # WriteTxnMarkers
        Handler(28, 0, 6, "transactions"),  # TxnOffsetCommit
        Handler(29, 0, 3, "security"),  # DescribeAcls
        Handler(30, 0, 3, "security"),  # CreateAcls
        Handler(31, 0, 3, "security"),  # DeleteAcls
        Handler(32, 0, 4, "configs"),  # DescribeConfigs
        Handler(33, 0, 2, "configs"),  # AlterConfigs
        Handler(34, 0, 2, "cluster"),  # AlterReplicaLogDirs
        Handler(35, 0, 5, "cluster"),  # DescribeLogDirs
        Handler(36, 0, 2, "security"),  # SaslAuthenticate
        Handler(37, 0, 3, "topics"),  # CreatePartitions
        Handler(42, 0, 3, "groups"),  # DeleteGroups
        Handler(43, 0, 2, "cluster"),  # ElectLeaders
        Handler(44, 0, 1, "configs"),  # IncrementalAlterConfigs
        Handler(45, 0, 1, "cluster"),  # AlterPartitionReassignments
        Handler(46, 0, 0, "cluster"),  # ListPartitionReassignments
        Handler(47, 0, 0, "groups"),  # OffsetDelete
        Handler(48, 0, 1, "configs"),  # DescribeClientQuotas
        Handler(49, 0, 1, "configs"),  # AlterClientQuotas
        Handler(50, 0, 0, "security"),  # DescribeUserScramCredentials
        Handler(51, 0, 0, "security"),  # AlterUserScramCredentials
        Handler(60, 0, 2, "cluster"),  # DescribeCluster
        Handler(61, 0, 0, "records"),  # DescribeProducers
        Handler(65, 0, 0, "transactions"),  # DescribeTransactions
        Handler(66, 0, 2, "transactions"),  # ListTransactions
        Handler(68, 0, 1, "groups"),  # ConsumerGroupHeartbeat
        Handler(69, 0, 1, "groups"),  # ConsumerGroupDescribe
        Handler(71, 0, 0, "configs"),  # GetTelemetrySubscriptions
        Handler(72, 0, 0, "configs"),  # PushTelemetry
        Handler(74, 0, 1, "configs"),  # ListConfigResources
        Handler(75, 0, 0, "topics"),  # DescribeTopicPartitions
    )
}

# The APIs that a broker forwards to the controller.
_FORWARDED_APIS = {
    "AlterClientQuotas",
    "AlterConfigs",
    "AlterPartitionReassignments",
    "AlterUserScramCredentials",
    "CreateAcls",
    "CreatePartitions",
    "CreateTopics",
    "DeleteAcls",
    "DeleteTopics",
    "ElectLeaders",
    "IncrementalAlterConfigs",
    "ListPartitionReassignments",
    "UpdateFeatures",
}
FORWARDED = frozenset(api.key for api in API_KEYS.values() if api.name in _FORWARDED_APIS)
