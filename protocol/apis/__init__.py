"""The APIs this project speaks, one module each; request and response in all versions that ever existed.

`API_KEYS` is the registry that versions, header versions and names are taken from (Kafka's class `ApiKeys`). Its rows
say again what the message classes say, so that knowing of an API costs no import: a module is loaded when its messages
are first asked for. A test holds rows and classes together.
"""

import re
from importlib import import_module

from sluice.protocol.message import Message, fields_of
from sluice.protocol.types import Versions

_WORD_START = re.compile("(?<=[a-z])(?=[A-Z])")


class Api:
    """One API: its key, its name without `Request`, its versions, and, on demand, its two messages."""

    __slots__ = (
        "_messages",
        "flexible_since",
        "key",
        "latest_unstable",
        "max_version",
        "min_version",
        "name",
    )

    def __init__(self, key: int, name: str, versions: Versions) -> None:
        self.key = key
        self.name = name
        self.min_version = versions.min
        self.max_version = versions.max
        self.flexible_since = versions.flexible.first  # beyond every version where none is flexible
        self.latest_unstable = versions.latest_unstable
        self._messages: tuple[type[Message], type[Message]] | None = None

    @property
    def module(self) -> str:
        """The name that its modules here and among the broker's handlers have: `api_versions` for ApiVersions."""
        return _WORD_START.sub("_", self.name).lower()

    @property
    def request(self) -> type[Message]:
        return self._load()[0]

    @property
    def response(self) -> type[Message]:
        return self._load()[1]

    def request_header_version(self, version: int) -> int:
        """The version of the RequestHeader before a request of `version`."""
        return 2 if version >= self.flexible_since else 1

    def response_header_version(self, version: int) -> int:
        """The version of the ResponseHeader before a response of `version`.

        0 for every ApiVersions response (KIP-511): its reader cannot know yet which versions the broker speaks.
        """
        return 1 if version >= self.flexible_since and self.key != API_VERSIONS else 0

    def has_throttle_time(self, version: int) -> bool:
        """Return whether a response of `version` has a throttle time."""
        return any(field.name == "throttle_time_ms" and version in field.versions for field in fields_of(self.response))

    def client_throttles(self, version: int) -> bool:
        """Return whether a client waits out the throttle time of a response of `version` itself (KIP-219)."""
        versions: Versions = self.response.VERSIONS  # type: ignore[attr-defined]  # every response has versions
        return version in versions.client_throttles

    def _load(self) -> tuple[type[Message], type[Message]]:
        if self._messages is None:
            module = import_module(f"{__name__}.{self.module}")
            self._messages = getattr(module, f"{self.name}Request"), getattr(module, f"{self.name}Response")
        return self._messages


# The keys that the broker treats apart from all others.
PRODUCE = 0
FETCH = 1
SASL_HANDSHAKE = 17
API_VERSIONS = 18
SASL_AUTHENTICATE = 36

_APIS = (
    Api(PRODUCE, "Produce", Versions("0-13", flexible="9+")),
    Api(FETCH, "Fetch", Versions("0-18", flexible="12+")),
    Api(2, "ListOffsets", Versions("0-11", flexible="6+")),
    Api(3, "Metadata", Versions("0-13", flexible="9+")),
    Api(8, "OffsetCommit", Versions("0-10", flexible="8+")),
    Api(9, "OffsetFetch", Versions("0-10", flexible="6+")),
    Api(10, "FindCoordinator", Versions("0-6", flexible="3+")),
    Api(11, "JoinGroup", Versions("0-9", flexible="6+")),
    Api(12, "Heartbeat", Versions("0-4", flexible="4+")),
    Api(13, "LeaveGroup", Versions("0-5", flexible="4+")),
    Api(14, "SyncGroup", Versions("0-5", flexible="4+")),
    Api(15, "DescribeGroups", Versions("0-6", flexible="5+")),
    Api(16, "ListGroups", Versions("0-5", flexible="3+")),
    Api(SASL_HANDSHAKE, "SaslHandshake", Versions("0-1", flexible="none")),
    Api(API_VERSIONS, "ApiVersions", Versions("0-5", flexible="3+")),
    Api(19, "CreateTopics", Versions("0-7", flexible="5+")),
    Api(20, "DeleteTopics", Versions("0-6", flexible="4+")),
    Api(21, "DeleteRecords", Versions("0-2", flexible="2+")),
    Api(22, "InitProducerId", Versions("0-6", flexible="2+", latest_unstable=True)),
    Api(23, "OffsetForLeaderEpoch", Versions("0-4", flexible="4+")),
    Api(24, "AddPartitionsToTxn", Versions("0-5", flexible="3+")),
    Api(25, "AddOffsetsToTxn", Versions("0-4", flexible="3+")),
    Api(26, "EndTxn", Versions("0-5", flexible="3+")),
    Api(27, "WriteTxnMarkers", Versions("0-2", flexible="1+")),
    Api(28, "TxnOffsetCommit", Versions("0-6", flexible="3+")),
    Api(29, "DescribeAcls", Versions("0-3", flexible="2+")),
    Api(30, "CreateAcls", Versions("0-3", flexible="2+")),
    Api(31, "DeleteAcls", Versions("0-3", flexible="2+")),
    Api(32, "DescribeConfigs", Versions("0-4", flexible="4+")),
    Api(33, "AlterConfigs", Versions("0-2", flexible="2+")),
    Api(34, "AlterReplicaLogDirs", Versions("0-2", flexible="2+")),
    Api(35, "DescribeLogDirs", Versions("0-5", flexible="2+")),
    Api(SASL_AUTHENTICATE, "SaslAuthenticate", Versions("0-2", flexible="2+")),
    Api(37, "CreatePartitions", Versions("0-3", flexible="2+")),
    Api(38, "CreateDelegationToken", Versions("0-3", flexible="2+")),
    Api(39, "RenewDelegationToken", Versions("0-2", flexible="2+")),
    Api(40, "ExpireDelegationToken", Versions("0-2", flexible="2+")),
    Api(41, "DescribeDelegationToken", Versions("0-3", flexible="2+")),
    Api(42, "DeleteGroups", Versions("0-3", flexible="2+")),
    Api(43, "ElectLeaders", Versions("0-2", flexible="2+")),
    Api(44, "IncrementalAlterConfigs", Versions("0-1", flexible="1+")),
    Api(45, "AlterPartitionReassignments", Versions("0-1", flexible="0+")),
    Api(46, "ListPartitionReassignments", Versions("0", flexible="0+")),
    Api(47, "OffsetDelete", Versions("0", flexible="none")),
    Api(48, "DescribeClientQuotas", Versions("0-1", flexible="1+")),
    Api(49, "AlterClientQuotas", Versions("0-1", flexible="1+")),
    Api(50, "DescribeUserScramCredentials", Versions("0", flexible="0+")),
    Api(51, "AlterUserScramCredentials", Versions("0", flexible="0+")),
    Api(60, "DescribeCluster", Versions("0-2", flexible="0+")),
    Api(61, "DescribeProducers", Versions("0", flexible="0+")),
    Api(64, "UnregisterBroker", Versions("0", flexible="0+")),
    Api(65, "DescribeTransactions", Versions("0", flexible="0+")),
    Api(66, "ListTransactions", Versions("0-2", flexible="0+")),
    Api(68, "ConsumerGroupHeartbeat", Versions("0-1", flexible="0+")),
    Api(69, "ConsumerGroupDescribe", Versions("0-1", flexible="0+")),
    Api(71, "GetTelemetrySubscriptions", Versions("0", flexible="0+")),
    Api(72, "PushTelemetry", Versions("0", flexible="0+")),
    Api(74, "ListConfigResources", Versions("0-1", flexible="0+")),
    Api(75, "DescribeTopicPartitions", Versions("0", flexible="0+")),
)
API_KEYS: dict[int, Api] = {api.key: api for api in _APIS}
