"""The admin client (Kafka's KafkaAdminClient).

    async with AdminClient({"bootstrap.servers": "127.0.0.1:9092"}) as admin:
        (await admin.create_topics([NewTopic("orders", 3)])).all()
        (await admin.list_offsets({TopicPartition("orders", 0): LATEST}))[TopicPartition("orders", 0)].offset

Calls with several keys return `Outcomes`: a value or an exception for each key.

There are calls for topics, configs, offsets, classic groups and quotas.

Different on purpose: the NetworkClient updates metadata, as for a producer; Kafka's AdminMetadataManager makes separate
calls.
"""

from random import Random  # noqa: TID251  (the client's only source of randomness, unless one is given)

from sluice.client.backoff import new_random
from sluice.client.config import Given, Profile, admin_config
from sluice.client.metadata.metadata import Metadata
from sluice.client.network.asyncio_network import AsyncNetwork
from sluice.client.network.in_flight import request_of
from sluice.client.retry_sites import RetrySite, backoff_at
from sluice.clock import Clock
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import AdminCalls, least_loaded, raise_error
from .configs import ConfigAdmin
from .groups import GroupAdmin
from .partitions import PartitionAdmin
from .quotas import QuotaAdmin
from .topics import TopicAdmin

# As in Kafka: one request at a time to each broker.
_MAX_IN_FLIGHT = 1


@checks_arguments
class AdminClient(TopicAdmin, PartitionAdmin, ConfigAdmin, GroupAdmin, QuotaAdmin):
    """An admin client. It requires a running event loop and connects on the first call.

    Calls accept `timeout_ms`, their time including retries; the default is `default.api.timeout.ms`.
    """

    def __init__(
        self, config: Given, *, profile: Profile = "kafka", random: Random | None = None, clock: Clock | None = None
    ) -> None:
        """Validate the configuration; raise ConfigError. `profile="kip"` follows the KIP texts where Kafka differs."""
        self.config = admin_config(config, profile)
        self.config.ensure_supported()
        random = random or new_random()
        metadata = Metadata(
            backoff_at(RetrySite.ADMIN_METADATA, self.config, random.uniform),
            self.config.integer("metadata.max.age.ms"),
            equivalent_backoff=None,
        )
        self.network = AsyncNetwork.open(
            self.config, metadata, max_in_flight=_MAX_IN_FLIGHT, random=random, clock=clock
        )
        self._calls = AdminCalls(self.network, self.config, random)

    async def __aenter__(self) -> "AdminClient":
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; pending calls fail."""
        await self.network.close()

    async def describe_cluster(
        self, *, include_fenced_brokers: bool = False, timeout_ms: Milliseconds | None = None
    ) -> DescribeClusterResponse:
        """Return the cluster id, the controller and the brokers."""
        message = DescribeClusterRequest(include_fenced_brokers=include_fenced_brokers)
        request = request_of(message, oldest=2 * include_fenced_brokers)
        return await self._calls.call(least_loaded, request, DescribeClusterResponse, timeout_ms, raise_error)
