"""The admin client: everything that a broker of ours, or Kafka, lets one make, change and describe (Kafka's
KafkaAdminClient).

    async with AdminClient({"bootstrap.servers": "127.0.0.1:9092"}) as admin:
        (await admin.create_topics([NewTopic("orders", 3)])).all()
        (await admin.list_offsets({TopicPartition("orders", 0): LATEST}))[TopicPartition("orders", 0)].offset

Calls about several things give `Outcomes`: a value or an exception for each. How a call finds its broker, and when it
is tried again, is told in `admin_calls`. What describes something is the broker's own words, a message of `protocol`.

Different on purpose: metadata is kept by the NetworkClient, as a producer's is, and goes before other requests; Kafka's
AdminMetadataManager makes calls of its own for it.
"""

from collections.abc import Mapping
from random import Random  # noqa: TID251  (a client's one source of chance is made here, unless it is given)
from types import TracebackType

from sluice.client.config import Given, Profile, admin_config
from sluice.client.errors import raise_for
from sluice.client.metadata.metadata import Metadata
from sluice.client.network.asyncio_network import AsyncNetwork
from sluice.client.network.in_flight import request_of
from sluice.client.network.network_client import SOFTWARE_NAME, SOFTWARE_VERSION
from sluice.client.network.node_api_versions import NodeApiVersions
from sluice.client.retry_sites import RetrySite, backoff_at
from sluice.clock import Clock
from sluice.protocol.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

from .access import AccessAdmin
from .calls import AdminCalls, least_loaded
from .configs import ConfigAdmin
from .groups import GroupAdmin
from .partitions import PartitionAdmin
from .topics import TopicAdmin
from .transactions import TransactionAdmin

# As Kafka's: calls to one broker wait for each other.
_MAX_IN_FLIGHT = 1


class AdminClient(TopicAdmin, PartitionAdmin, ConfigAdmin, GroupAdmin, AccessAdmin, TransactionAdmin):
    """Made within a running event loop; connects with the first call."""

    def __init__(
        self,
        config: Given,
        *,
        profile: Profile = "kafka",
        random: Random | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Raises ConfigError, a line that names what cannot be taken."""
        self.config = admin_config(config, profile)
        self.config.ensure_supported()
        random = random or Random()  # noqa: S311  (for jitter, not for secrets)
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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections; calls that wait fail."""
        await self.network.close()

    async def describe_cluster(
        self, *, include_fenced_brokers: bool = False, timeout_ms: int | None = None
    ) -> DescribeClusterResponse:
        """The cluster's id, its controller and its brokers."""
        message = DescribeClusterRequest(include_fenced_brokers=include_fenced_brokers)
        request = request_of(message, oldest=2 * include_fenced_brokers)
        return await self._calls.call(
            least_loaded,
            lambda _: request,
            DescribeClusterResponse,
            self._calls.deadline_ms(timeout_ms),
            lambda answer: raise_for(answer.error_code, answer.error_message),
        )

    async def describe_features(self, *, timeout_ms: int | None = None) -> Mapping[str, int]:
        """The level of each feature that the cluster runs, such as transaction.version (KIP-584)."""
        request = request_of(
            ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
        )
        deadline_ms = self._calls.deadline_ms(timeout_ms)
        answer = await self._calls.call(
            least_loaded,
            lambda _: request,
            ApiVersionsResponse,
            deadline_ms,
            lambda answer: raise_for(answer.error_code),
        )
        return NodeApiVersions(answer).features
