"""The registry: which APIs are served, in which versions. ApiVersions is made from it.

One module per API, the twin of the module of the same name in `sluice.protocol.apis`, with a function `handle`. It is
loaded with the first request of its API: knowing what is served costs no import.
"""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple, cast

from sluice.broker.context import Outcome, RequestContext
from sluice.protocol.apis import API_KEYS
from sluice.protocol.message import Message


class Handler(NamedTuple):
    """One API as it is served: in which versions."""

    api_key: int
    min_version: int
    max_version: int

    def load(self) -> Callable[[RequestContext, Message], Message | Outcome]:
        """The function that handles its requests.

        It takes what the decoder of its API gives; the type checker cannot see that both are of one API.
        """
        handle = import_module(f"{__name__}.{API_KEYS[self.api_key].module}").handle
        return cast("Callable[[RequestContext, Message], Message | Outcome]", handle)


HANDLERS = {
    handler.api_key: handler
    for handler in (
        Handler(0, 0, 13),  # Produce
        Handler(1, 0, 18),  # Fetch
        Handler(2, 0, 11),  # ListOffsets
        Handler(3, 0, 13),  # Metadata
        Handler(8, 0, 10),  # OffsetCommit
        Handler(9, 0, 10),  # OffsetFetch
        Handler(10, 0, 6),  # FindCoordinator
        Handler(11, 0, 9),  # JoinGroup
        Handler(12, 0, 4),  # Heartbeat
        Handler(13, 0, 5),  # LeaveGroup
        Handler(14, 0, 5),  # SyncGroup
        Handler(15, 0, 6),  # DescribeGroups
        Handler(16, 0, 5),  # ListGroups
        Handler(17, 0, 1),  # SaslHandshake
        Handler(18, 0, 5),  # ApiVersions
        Handler(19, 0, 7),  # CreateTopics
        Handler(20, 0, 6),  # DeleteTopics
        Handler(21, 0, 2),  # DeleteRecords
        Handler(22, 0, 5),  # InitProducerId; 6 is two-phase commit's, and unstable
        Handler(23, 0, 4),  # OffsetForLeaderEpoch
        Handler(24, 0, 5),  # AddPartitionsToTxn
        Handler(25, 0, 4),  # AddOffsetsToTxn
        Handler(26, 0, 5),  # EndTxn
        Handler(27, 0, 2),  # WriteTxnMarkers
        Handler(28, 0, 6),  # TxnOffsetCommit
        Handler(29, 0, 3),  # DescribeAcls
        Handler(30, 0, 3),  # CreateAcls
        Handler(31, 0, 3),  # DeleteAcls
        Handler(32, 0, 4),  # DescribeConfigs
        Handler(33, 0, 2),  # AlterConfigs
        Handler(34, 0, 2),  # AlterReplicaLogDirs
        Handler(35, 0, 5),  # DescribeLogDirs
        Handler(36, 0, 2),  # SaslAuthenticate
        Handler(37, 0, 3),  # CreatePartitions
        Handler(42, 0, 3),  # DeleteGroups
        Handler(43, 0, 2),  # ElectLeaders
        Handler(44, 0, 1),  # IncrementalAlterConfigs
        Handler(45, 0, 1),  # AlterPartitionReassignments
        Handler(46, 0, 0),  # ListPartitionReassignments
        Handler(47, 0, 0),  # OffsetDelete
        Handler(48, 0, 1),  # DescribeClientQuotas
        Handler(49, 0, 1),  # AlterClientQuotas
        Handler(50, 0, 0),  # DescribeUserScramCredentials
        Handler(51, 0, 0),  # AlterUserScramCredentials
        Handler(60, 0, 2),  # DescribeCluster
        Handler(61, 0, 0),  # DescribeProducers
        Handler(65, 0, 0),  # DescribeTransactions
        Handler(66, 0, 2),  # ListTransactions
        Handler(68, 0, 1),  # ConsumerGroupHeartbeat
        Handler(69, 0, 1),  # ConsumerGroupDescribe
        Handler(71, 0, 0),  # GetTelemetrySubscriptions
        Handler(72, 0, 0),  # PushTelemetry
        Handler(74, 0, 1),  # ListConfigResources
        Handler(75, 0, 0),  # DescribeTopicPartitions
    )
}
