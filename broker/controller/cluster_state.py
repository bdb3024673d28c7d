"""The state that the brokers of a process share, but for the changes of topics (cluster.py), and each broker's part."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from sluice.broker.controller.configs.client_metrics import ClientMetricsConfigs
from sluice.broker.controller.configs.group_configs import GroupConfigs
from sluice.broker.journal.journal import Journal
from sluice.broker.metadata.cache import MetadataCache, Node
from sluice.broker.metadata.features import Features
from sluice.broker.metadata.topic import Partition, Topic
from sluice.broker.replica.replica_manager import ReplicaManager
from sluice.broker.requests.runtime import Runtime
from sluice.broker.security.acl.acl import Acl
from sluice.broker.security.acl.acl_store import Acls
from sluice.broker.security.sasl.scram_credentials import ScramCredentials
from sluice.broker.throttling.profile import PROFILES
from sluice.broker.throttling.quota_resolver import QuotaResolver
from sluice.config.broker_config import Config
from sluice.config.value_types import parse_users
from sluice.errors import ConfigError, NotDurableError
from sluice.protocol.errors import ErrorCode
from sluice.quotas.client_quotas import ClientQuotas
from sluice.quotas.quota_managers import ControllerQuotas
from sluice.quotas.store import QuotaStores

if TYPE_CHECKING:
    from .metadata_log.durable_metadata import DurableMetadata

_IDLE_INTERVAL_MS = 500  # between no-op records (metadata.max.idle.interval.ms)
# Producer ids per allocation of a broker, from 0 (ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE).
_PRODUCER_IDS_PER_BLOCK = 1000


class ClusterMember(Node, ABC):
    """A broker as the controller sees it."""

    def __init__(self, node_id: int, config: Config, metadata: MetadataCache, replicas: ReplicaManager) -> None:
        rack = config.value("broker.rack")
        super().__init__(node_id, str(rack) if rack else None)
        self.config = config
        self.metadata = metadata
        self.replicas = replicas
        self.is_isolated = False
        self.on_configured: list[Callable[[], None]] = []
        # Called with whether requests for the controller are held; the exchange sets it.
        self.hold_forwarded: Callable[[bool], None] = _ignore

    def isolate(self, metadata: MetadataCache) -> None:
        self.is_isolated = True
        self.metadata = metadata

    def rejoin(self, metadata: MetadataCache) -> MetadataCache:
        """End the isolation; return the metadata of the broker until now."""
        isolated, self.metadata = self.metadata, metadata
        self.is_isolated = False
        return isolated

    @abstractmethod
    def started_leading(self, partition: Partition) -> None: ...

    @abstractmethod
    def stopped_leading(self, partition: Partition) -> None: ...


class ClusterState:
    def __init__(self, runtime: Runtime) -> None:
        config = runtime.config
        self.runtime = runtime
        self.config = config
        self.brokers: dict[int, ClusterMember] = {}
        self.racks: dict[int, str] = {}  # without brokers that have no rack
        self.fenced: set[int] = set()  # node ids of the brokers that the controller considers dead
        self.unregistered: set[int] = set()  # fenced ones that register again when they start
        self.features = Features()
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.topics_created = 0
        self.metadata_generation = 0  # counts the changes of what Metadata returns
        self.metadata = self.new_metadata()
        self.metadata_log: DurableMetadata | None = None  # None without a data directory
        # Whether new partitions need no controller until a broker or replica fails.
        self.is_simple = not any(map(config.integer, ("sluice.replication.delay.ms", "sluice.metadata.lag.ms")))
        self.journal = self._new_journal(config.integer("sluice.journal.events"))
        # Dynamic configs (KIP-226) by node id; "": cluster-wide.
        self.broker_configs: dict[str, Mapping[str, str]] = {}
        self.next_producer_id = 0
        self.quota_stores = QuotaStores(config)
        self._quota_resolver = QuotaResolver(config, PROFILES[config.text("quota.profile")].empty_client_id)
        self.controller_quotas = ControllerQuotas(
            config, self._quota_resolver.rules_of("ControllerMutation"), self.quota_stores
        )
        self._started_ms = runtime.clock.monotonic_ms()

    def _new_journal(self, events: int) -> Journal | None:
        if not events:
            if self.config.boolean("sluice.journal.topic"):
                raise ConfigError("sluice.journal.topic: true requires sluice.journal.events above 0")
            return None
        hashes_records = self.config.boolean("sluice.journal.record.hashes")
        return Journal(events, self.runtime.clock, self.topics_by_id, hashes_records=hashes_records)

    def new_metadata(self) -> MetadataCache:
        return MetadataCache(self.topics, self.topics_by_id, self.fenced, self.brokers)

    def close(self) -> None:
        self.runtime.close()
        self._quota_resolver.close()
        if self.metadata_log is not None:
            self.metadata_log.close()

    # -- brokers -------------------------------------------------------------------------------------------------------

    @property
    def registered(self) -> list[int]:
        return [node_id for node_id in self.brokers if node_id not in self.unregistered]

    def join(self, broker: ClusterMember) -> None:
        self.brokers[broker.node_id] = broker
        self.metadata_generation += 1
        if broker.rack is not None:
            self.racks[broker.node_id] = broker.rack
        own, cluster_default = self.broker_configs.get(str(broker.node_id), {}), self.broker_configs.get("", {})
        if own or cluster_default:
            broker.config.set_dynamic(own, cluster_default)

    def leader_of(self, partition: Partition) -> ClusterMember | None:
        return self.brokers.get(partition.leader)

    def high_watermark_moved(self, partition: Partition) -> None:
        leader = self.leader_of(partition)
        if leader is not None:
            leader.replicas.fetches.check_and_complete(partition)
        for fetches in partition.follower_fetches:
            fetches.check_and_complete(partition)
        self.complete_delayed_produces(partition)

    def complete_delayed_produces(self, partition: Partition) -> None:
        """Check the delayed produces of all brokers: transaction coordinators wait for other brokers' partitions."""
        for broker in self.brokers.values():
            if not broker.is_isolated:  # such a broker does not learn of the change
                broker.replicas.produces.check_and_complete(partition)

    @property
    def metadata_end_offset(self) -> int:
        # Without a metadata log, count the no-op records that it would contain.
        if self.metadata_log is not None:
            return self.metadata_log.end_offset
        return int(self.runtime.clock.monotonic_ms() - self._started_ms) // _IDLE_INTERVAL_MS

    def update_features(self, levels: Mapping[str, int]) -> ErrorCode:
        failed = ErrorCode.NONE if self.metadata_log is None else self.metadata_log.features_updated(levels)
        if not failed:
            for name, level in levels.items():
                self.features.set_level(name, level)
        return failed

    def new_producer_ids(self, node_id: int) -> range:
        """Allocate a block of ids. Raises NotDurableError if the metadata log cannot be written."""
        given = range(self.next_producer_id, self.next_producer_id + _PRODUCER_IDS_PER_BLOCK)
        if self.metadata_log is not None and self.metadata_log.producer_ids_allocated(node_id, given.stop):
            raise NotDurableError("producer ids")
        self.next_producer_id = given.stop
        return given

    # -- dynamic settings of all brokers -------------------------------------------------------------------------------

    @cached_property
    def client_quotas(self) -> ClientQuotas:
        return ClientQuotas(self.quota_stores)

    @cached_property
    def group_configs(self) -> GroupConfigs:
        return GroupConfigs(self.config)

    @cached_property
    def client_metrics_configs(self) -> ClientMetricsConfigs:
        return ClientMetricsConfigs()

    @cached_property
    def scram_credentials(self) -> ScramCredentials:
        return ScramCredentials(parse_users(self.config.text("sluice.sasl.users")), self.runtime.random.randbytes)

    @cached_property
    def acls(self) -> Acls:
        def write(created: Sequence[tuple[bytes, Acl]], deleted: Sequence[bytes]) -> ErrorCode:
            return ErrorCode.NONE if self.metadata_log is None else self.metadata_log.acls_changed(created, deleted)

        return Acls(self.runtime.random.randbytes, write)


def _ignore(_: bool) -> None:
    pass
