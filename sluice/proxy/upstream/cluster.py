"""What the proxy knows of the upstream cluster: its brokers, their addresses and API versions."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from random import Random  # noqa: TID251  (for jitter)
from typing import NamedTuple

from sluice.broker.metadata.features import Feature
from sluice.client.admin.admin import AdminClient
from sluice.client.admin.calls import AdminCalls, broker, least_loaded
from sluice.client.errors import AuthenticationException, KafkaException
from sluice.client.network.in_flight import request_of
from sluice.clock import Clock, sleep_ms
from sluice.errors import ConfigError
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from sluice.proxy.sasl.authentication import CLIENT_ID, LIFETIME_SINCE

log = logging.getLogger("sluice.proxy")

VersionRange = tuple[int, int]

# Each has a listening port. No known cluster is as large, and a response that is not Kafka's may name a million.
_MOST_BROKERS = 1000
# Time of a request and its retries; after it, the reason is logged.
_TIMEOUT_MS = 5_000


class UpstreamBroker(NamedTuple):
    node_id: int
    host: str
    port: int


class UpstreamTopic(NamedTuple):
    name: str
    topic_id: bytes
    partitions: int


class UpstreamCluster:
    def __init__(self, properties: Mapping[str, str], clock: Clock) -> None:
        """`properties`: those of an admin client, with `bootstrap.servers`. Raises ConfigError."""
        try:
            self.admin = AdminClient({"client.id": CLIENT_ID, **properties}, clock=clock)
        except ConfigError as error:
            raise ConfigError(f"upstream: {str(error).removeprefix('admin: ')}") from None
        self.config = self.admin.config
        self.calls = AdminCalls(self.admin.network, self.config, Random())  # noqa: S311  (for jitter, not for secrets)
        self._clock = clock
        self.features: dict[str, Feature] = {}
        self.features_epoch = 0
        self.brokers: dict[int, UpstreamBroker] = {}  # also those that have left
        self.cluster_id = ""
        self.controller_id = -1
        self.authenticate_versions: dict[int, int] = {}  # of the proxy's SaslAuthenticate, by node id

    async def refresh(self) -> list[int]:
        """Ask for the brokers; return the ids of those that are there now. Raises KafkaException."""
        request = request_of(MetadataRequest(topics=[], allow_auto_topic_creation=False), oldest=1)
        metadata = await self.calls.call(least_loaded, request, MetadataResponse, _TIMEOUT_MS)
        self.cluster_id = metadata.cluster_id or ""
        self.controller_id = metadata.controller_id
        found = {
            each.node_id: UpstreamBroker(each.node_id, each.host, each.port)
            for each in metadata.brokers
            if each.node_id >= 0
        }
        known = {**self.brokers, **found}
        if not found or len(known) > _MOST_BROKERS:
            raise KafkaException(
                f"Metadata: expected 1 to {_MOST_BROKERS} brokers, got {len(known if found else found)}"
            )
        self.brokers = known
        return [*found]

    async def versions(self, node_ids: Iterable[int]) -> dict[int, dict[int, VersionRange]]:
        """Return the API versions of the brokers that respond in time. Raises KafkaException if none does."""

        async def versions_or_error(node_id: int) -> dict[int, VersionRange] | KafkaException:
            try:
                return await self.versions_of(node_id)
            except KafkaException as error:
                return error

        ids = [*node_ids]
        results = dict(zip(ids, await asyncio.gather(*map(versions_or_error, ids)), strict=True))
        found = {node_id: each for node_id, each in results.items() if not isinstance(each, KafkaException)}
        for failure in results.values():
            if isinstance(failure, AuthenticationException) or (isinstance(failure, KafkaException) and not found):
                raise failure
        return found

    async def versions_of(self, node_id: int) -> dict[int, VersionRange]:
        """Return the API versions that a broker serves and the proxy can read. Raises KafkaException."""
        request = request_of(ApiVersionsRequest(client_software_name="sluice", client_software_version="1"))
        response = await self.calls.call(broker(node_id), request, ApiVersionsResponse, _TIMEOUT_MS)
        common: dict[int, VersionRange] = {}
        self._read_features(response)
        for each in response.api_keys:
            api = API_KEYS.get(each.api_key)
            if api is None:
                continue
            first, last = max(api.min_version, each.min_version), min(api.max_version, each.max_version)
            if first <= last:
                common[each.api_key] = first, last
        _, latest = common.get(ApiKey.SASL_AUTHENTICATE, (0, 0))
        self.authenticate_versions[node_id] = min(latest, LIFETIME_SINCE)
        return common

    async def topics(self, names: Collection[str], ids: Collection[bytes]) -> list[UpstreamTopic]:
        """Return the topics that exist. Raises KafkaException."""
        wanted = [MetadataRequestTopic(name=name) for name in names]
        wanted += [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids]
        request = request_of(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), oldest=12 if ids else 4)
        response = await self.calls.call(least_loaded, request, MetadataResponse, None)
        return [
            UpstreamTopic(each.name, each.topic_id, len(each.partitions))
            for each in response.topics
            if each.name is not None and not each.error_code
        ]

    async def topics_of_any_broker(self) -> set[str]:
        """Return the topics that at least one broker lists; one may lag behind. Raises KafkaException."""
        request = request_of(MetadataRequest(topics=None, allow_auto_topic_creation=False), oldest=1)
        responses = await self.calls.call_all_brokers(request, MetadataResponse, lambda _: None, None)
        return {topic.name for response in responses for topic in response.topics if topic.name is not None}

    async def pause(self, ms: float) -> None:
        await sleep_ms(self._clock, ms)

    def _read_features(self, response: ApiVersionsResponse) -> None:
        levels = {feature.name: feature.max_version_level for feature in response.finalized_features}
        self.features = {
            feature.name: Feature(
                feature.name, feature.min_version, feature.max_version, finalized_level=levels.get(feature.name, 0)
            )
            for feature in response.supported_features
        }
        self.features_epoch = response.finalized_features_epoch

    async def close(self) -> None:
        await self.admin.close()
