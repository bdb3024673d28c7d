"""Admin calls for the cluster: its brokers, features and quorum."""

from collections.abc import Mapping
from enum import IntEnum

from sluice.client.network.in_flight import request_of
from sluice.client.network.network_client import SOFTWARE_NAME, SOFTWARE_VERSION
from sluice.client.network.node_api_versions import NodeApiVersions
from sluice.protocol.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from sluice.protocol.apis.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from sluice.protocol.apis.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from sluice.protocol.apis.update_features import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import AdminCalls, controller, least_loaded, raise_error

_QUORUM = DescribeQuorumRequest(
    topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])]
)


class FeatureChange(IntEnum):
    """How the level of a feature may change (Kafka's FeatureUpdate.UpgradeType)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@checks_arguments
class ClusterAdmin:
    _calls: AdminCalls

    async def describe_cluster(
        self, *, include_fenced_brokers: bool = False, timeout_ms: Milliseconds | None = None
    ) -> DescribeClusterResponse:
        """Return the cluster id, the controller and the brokers."""
        message = DescribeClusterRequest(include_fenced_brokers=include_fenced_brokers)
        request = request_of(message, oldest=2 * include_fenced_brokers)
        return await self._calls.call(least_loaded, request, DescribeClusterResponse, timeout_ms, raise_error)

    async def describe_features(self, *, timeout_ms: Milliseconds | None = None) -> Mapping[str, int]:
        """Return the finalized feature levels, such as transaction.version (KIP-584)."""
        request = request_of(
            ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
        )
        response = await self._calls.call(least_loaded, request, ApiVersionsResponse, timeout_ms, raise_error)
        return NodeApiVersions(response).features

    async def update_features(
        self,
        levels: Mapping[str, int],
        *,
        change: FeatureChange = FeatureChange.UPGRADE,
        validate_only: bool = False,
        timeout_ms: Milliseconds | None = None,
    ) -> None:
        """Change the finalized levels of features, all or none; 0 disables a feature."""
        updates = [
            FeatureUpdateKey(
                feature=name,
                max_version_level=level,
                allow_downgrade=change is not FeatureChange.UPGRADE,
                upgrade_type=change,
            )
            for name, level in levels.items()
        ]
        message = UpdateFeaturesRequest(feature_updates=updates, validate_only=validate_only)
        only_in_v1 = validate_only or change is FeatureChange.UNSAFE_DOWNGRADE
        request = request_of(message, oldest=int(only_in_v1))
        await self._calls.call(controller, request, UpdateFeaturesResponse, timeout_ms, _raise_update_error)

    async def describe_metadata_quorum(self, *, timeout_ms: Milliseconds | None = None) -> ResponsePartitionData:
        """Return the leader, voters and observers of the metadata log (KIP-836)."""
        response = await self._calls.call(
            least_loaded, request_of(_QUORUM), DescribeQuorumResponse, timeout_ms, _raise_quorum_error
        )
        return response.topics[0].partitions[0]

    async def unregister_broker(self, broker_id: int, *, timeout_ms: Milliseconds | None = None) -> None:
        """Remove a stopped broker from the cluster permanently."""
        request = request_of(UnregisterBrokerRequest(broker_id=broker_id))
        await self._calls.call(least_loaded, request, UnregisterBrokerResponse, timeout_ms, raise_error)


def _raise_update_error(response: UpdateFeaturesResponse) -> None:
    raise_error(response)
    for result in response.results:
        raise_error(result)


def _raise_quorum_error(response: DescribeQuorumResponse) -> None:
    raise_error(response)
    raise_error(response.topics[0].partitions[0])
