"""The APIs this project speaks, one module each; request and response in all versions that ever existed.

`API_KEYS` is the registry that versions, header versions and names are taken from (Kafka's class `ApiKeys`).
"""

from sluice.protocol.compile import versions_of
from sluice.protocol.message import Message

from .api_versions import ApiVersionsRequest, ApiVersionsResponse
from .create_topics import CreateTopicsRequest, CreateTopicsResponse
from .delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from .describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from .describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from .fetch import FetchRequest, FetchResponse
from .find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from .init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from .list_offsets import ListOffsetsRequest, ListOffsetsResponse
from .metadata import MetadataRequest, MetadataResponse
from .offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from .produce import ProduceRequest, ProduceResponse


class Api:
    """One API: its key, its name without `Request`, its two messages and their versions."""

    __slots__ = (
        "flexible_since",
        "key",
        "latest_unstable",
        "max_version",
        "min_version",
        "name",
        "request",
        "response",
    )

    def __init__(self, key: int, request: type[Message], response: type[Message]) -> None:
        versions = versions_of(request)
        self.key = key
        self.name = request.__name__.removesuffix("Request")
        self.request = request
        self.response = response
        self.min_version = versions.min
        self.max_version = versions.max
        self.flexible_since = versions.flexible.first  # beyond every version where none is flexible
        self.latest_unstable = versions.latest_unstable

    def request_header_version(self, version: int) -> int:
        """The version of the RequestHeader before a request of `version`."""
        return 2 if version >= self.flexible_since else 1

    def response_header_version(self, version: int) -> int:
        """The version of the ResponseHeader before a response of `version`.

        0 for every ApiVersions response (KIP-511): its reader cannot know yet which versions the broker speaks.
        """
        return 1 if version >= self.flexible_since and self.request is not ApiVersionsRequest else 0


_APIS = (
    Api(ProduceRequest.API_KEY, ProduceRequest, ProduceResponse),
    Api(FetchRequest.API_KEY, FetchRequest, FetchResponse),
    Api(ListOffsetsRequest.API_KEY, ListOffsetsRequest, ListOffsetsResponse),
    Api(MetadataRequest.API_KEY, MetadataRequest, MetadataResponse),
    Api(FindCoordinatorRequest.API_KEY, FindCoordinatorRequest, FindCoordinatorResponse),
    Api(ApiVersionsRequest.API_KEY, ApiVersionsRequest, ApiVersionsResponse),
    Api(CreateTopicsRequest.API_KEY, CreateTopicsRequest, CreateTopicsResponse),
    Api(DeleteTopicsRequest.API_KEY, DeleteTopicsRequest, DeleteTopicsResponse),
    Api(InitProducerIdRequest.API_KEY, InitProducerIdRequest, InitProducerIdResponse),
    Api(OffsetForLeaderEpochRequest.API_KEY, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
    Api(DescribeConfigsRequest.API_KEY, DescribeConfigsRequest, DescribeConfigsResponse),
    Api(DescribeClusterRequest.API_KEY, DescribeClusterRequest, DescribeClusterResponse),
)
API_KEYS: dict[int, Api] = {api.key: api for api in _APIS}
