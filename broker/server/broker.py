"""One broker: its configuration, state and components, without sockets.

The cluster has what the brokers of the process share.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from random import Random  # noqa: TID251  (type only)
from typing import TYPE_CHECKING, cast

from sluice.broker.controller.cluster import Cluster
from sluice.broker.exchange.advertised_versions import advertised_by, served_as
from sluice.broker.exchange.exchange import Exchange
from sluice.broker.exchange.registry import FORWARDED, HANDLERS
from sluice.broker.metadata.cache import MetadataCache
from sluice.broker.metadata.features import GROUP_FEATURES, features_of_new_cluster
from sluice.broker.metadata.new_topic import NewTopic, TopicError
from sluice.broker.metadata.topic import (
    GROUP_METADATA_TOPIC,
    METADATA_TOPIC,
    NO_LEADER,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    Partition,
    Topic,
)
from sluice.broker.replica.fetch_session import FetchSessionCache
from sluice.broker.replica.replica_manager import ReplicaManager
from sluice.broker.requests.channel import Channel
from sluice.broker.security.acl.auth_helper import AuthHelper
from sluice.broker.security.acl.authorizer import Authorizer
from sluice.broker.throttling.profile import PROFILES
from sluice.broker.throttling.quota_resolver import QuotaResolver
from sluice.broker.throttling.throttle_histogram import ThrottleHistograms
from sluice.broker.throttling.throttler import Throttler
from sluice.clock import Clock
from sluice.config.broker_config import Config, Endpoint
from sluice.config.property_table import RACK_AWARE
from sluice.protocol.apis.api_versions import ApiVersion
from sluice.protocol.errors import ErrorCode
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.purgatory.scheduler import Scheduler
from sluice.purgatory.timer import Timer
from sluice.quotas.quota_managers import QuotaManagers

if TYPE_CHECKING:
    from sluice.broker.controller.configs.client_metrics_manager import Telemetry
    from sluice.broker.controller.configs.control import ConfigurationControl
    from sluice.broker.coordinator.group.coordinator import GroupCoordinator
    from sluice.broker.coordinator.share.coordinator import ShareCoordinator
    from sluice.broker.coordinator.share.persister import SharePersister
    from sluice.broker.coordinator.transaction.coordinator import TransactionCoordinator
    from sluice.broker.security.sasl.scram_credentials import ScramCredentials
    from sluice.broker.share.manager import SharePartitionManager

    Coordinator = GroupCoordinator | TransactionCoordinator | ShareCoordinator

# Kafka's Metrics removes expired sensors as often.
_SENSOR_EXPIRY_INTERVAL_MS = 30_000
# Release with ZooKeeper -> whether a broker creates topics there, by its id and the controller's.
_WRITES_TO_ZOOKEEPER: Mapping[str, Callable[[int, int], bool]] = {
    **dict.fromkeys(("kafka-0.9", "kafka-0.10.2", "kafka-1.1"), lambda _node_id, _controller_id: True),
    "kafka-2.8": int.__eq__,
}
# The interval at which a quota callback is notified of changed topics and leaders.
_METADATA_CHECK_MS = 1_000


class Broker:
    """The state that requests read and change, for one thread."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        random: Random,
        cluster: Cluster | None = None,
        node_id: int | None = None,
    ) -> None:
        self._is_alone = cluster is None
        self.cluster = cluster = Cluster(config, clock, random) if cluster is None else cluster
        self.metadata = self._new_metadata()
        self.is_isolated = False
        self.node_id = cluster.next_node_id() if node_id is None else node_id
        self.config = config.of_node(self.node_id)
        rack = self.config.value("broker.rack")
        self.rack = str(rack) if rack else None
        self.clock = clock
        self.random = random
        self.started_ms = clock.monotonic_ms()
        self.endpoints: dict[str, Endpoint] = {}
        self.on_configured: list[Callable[[], None]] = []
        self.timer = Timer(clock)
        self.replicas = ReplicaManager(self.node_id, config, self.timer, cluster)
        self.fault_waits: DelayedOperationPurgatory | None = None
        self.throttled = DelayedOperationPurgatory("Throttle", self.timer)
        self.scheduler = Scheduler(self.timer)
        self.profile = PROFILES[config.text("quota.profile")]
        self._quota_resolver = QuotaResolver(config, self.profile.empty_client_id)
        self.quotas = QuotaManagers(config, self.profile.rate, self._quota_resolver.rules_of, cluster.quota_stores)
        histograms = ThrottleHistograms(config.integer("sluice.metrics.client.ids.max"))
        self.throttler = Throttler(
            self.profile, self.quotas, cluster.controller_quotas, clock, histograms, cluster.journal
        )
        self.authorizer = self._new_authorizer()
        self.selects_replicas = config.value("replica.selector.class") == RACK_AWARE
        # Whether a fetch of one partition may take the fast path.
        self.has_plain_fetches = self.authorizer is None and not self.selects_replicas
        self.actions = cluster.actions
        self.journal = cluster.journal
        self.exchange = Exchange(
            self, clock, self.throttler, self.throttled, cluster.actions, cluster.long_requests, cluster.journal
        )
        release = config.text("sluice.kafka.release")
        self.advertised = advertised_by(release)
        self.served = served_as(release)
        for key, handler in HANDLERS.items():
            if handler.api.advertised_with and not config.boolean(handler.api.advertised_with):
                self.advertised.pop(key, None)
        self.features = cluster.features
        if not self.features.by_name:
            self.features.by_name = features_of_new_cluster(self.config, release, self.served)
        self.fetch_sessions = FetchSessionCache(
            self.config.integer("max.incremental.fetch.session.cache.slots"),
            self.config.integer("sluice.fetch.session.partitions.max"),
            random,
        )
        self.auto_creates_topics = config.boolean("auto.create.topics.enable")
        self.deletes_topics = config.boolean("delete.topic.enable")
        self.max_fetch_bytes = config.integer("fetch.max.bytes")
        self._producer_ids = iter(range(0))
        self.scheduler.schedule(_SENSOR_EXPIRY_INTERVAL_MS, self._expire_sensors)
        if self._quota_resolver.callback is not None:
            self.scheduler.schedule(
                _METADATA_CHECK_MS, lambda: self._quota_resolver.update_metadata(cluster.topics.values(), self.quotas)
            )
        cluster.join(self)

    @property
    def scram_credentials(self) -> "ScramCredentials":
        return self.cluster.scram_credentials

    def quota_time_ms(self) -> int:
        """Return wall-clock milliseconds that step back by less than a quota window."""
        return self.throttler.time.at(self.clock.wall_ms())

    def leader_of(self, partition: Partition) -> "Broker | None":
        leadership = self.metadata.leadership(partition)
        leader = None if leadership is None else self.metadata.leader(leadership)
        return None if leader is None else brokers_of(self.cluster)[leader.node_id]

    @property
    def controller_id(self) -> int:
        return self.metadata.controller_id if self.cluster.controller_id != NO_LEADER else NO_LEADER

    def auto_create_topic(self, name: str) -> ErrorCode:
        """Create a topic; return the error for the client, which then requests metadata again.

        Brokers return UNKNOWN_TOPIC_OR_PARTITION at once. A broker that creates topics in ZooKeeper (before 2.8 any
        broker, in 2.8 the controller) returns LEADER_NOT_AVAILABLE, or the error of the creation.
        """
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self.is_isolated or name == METADATA_TOPIC:
            return unknown
        created = self.create_topic(NewTopic(name))
        is_writer = _WRITES_TO_ZOOKEEPER.get(self.config.text("sluice.kafka.release"))
        if is_writer is None or not is_writer(self.node_id, self.controller_id):
            return unknown
        return created.code if isinstance(created, TopicError) else ErrorCode.LEADER_NOT_AVAILABLE

    def create_topic(self, new: NewTopic) -> Topic | TopicError:
        if self.is_isolated:
            return TopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
        return self.cluster.auto_create(new)

    def internal_topic(self, name: str) -> Topic:
        return self.metadata.topics.get(name) or self.metadata.add_topic(self.cluster.internal_topic(name))

    def isolate(self, metadata: MetadataCache) -> None:
        self.is_isolated = True
        self.metadata = metadata

    def rejoin(self) -> MetadataCache:
        """End the isolation; return the metadata of the broker until now."""
        isolated, self.metadata = self.metadata, self._new_metadata()
        self.is_isolated = False
        return isolated

    def hold_forwarded(self, *, hold: bool) -> None:
        """Hold requests for the controller, or handle the held ones."""
        self.exchange.routes.hold_forwarded(FORWARDED if hold else ())

    def _new_metadata(self) -> MetadataCache:
        cluster = self.cluster
        return MetadataCache(cluster.topics, cluster.topics_by_id, cluster.fenced, cluster.brokers)

    def serves_groups(self, protocol: str) -> bool:
        """Return whether consumer or streams groups are enabled; share groups depend on share.version."""
        enabled = self.config.names("group.coordinator.rebalance.protocols")
        return protocol in enabled and self.features.is_enabled(GROUP_FEATURES[protocol])

    def started_leading(self, partition: Partition) -> None:
        """Load coordinator state, unless it is loaded."""
        partition.traffic = partition.topic.traffic_on(self.node_id)
        coordinator = self._coordinator_in(partition)
        if coordinator is not None:
            coordinator.shards.load(partition)

    def stopped_leading(self, partition: Partition) -> None:
        coordinator = self._coordinator_in(partition)
        if coordinator is not None:
            coordinator.shards.unload(partition)
        if self.share_partitions_in_use is not None:
            self.share_partitions_in_use.drop_partition(partition)
        self.replicas.complete_delayed_operations(partition)

    def _coordinator_in(self, partition: Partition) -> "Coordinator | None":
        # None also for an unused coordinator without state.
        if partition.topic.name == GROUP_METADATA_TOPIC:
            return self.groups if partition.log.log_end_offset else self.groups_in_use
        if partition.topic.name == TRANSACTION_STATE_TOPIC:
            return self.transactions if partition.log.log_end_offset else self.transactions_in_use
        if partition.topic.name == SHARE_GROUP_STATE_TOPIC:
            return self.share_coordinator if partition.log.log_end_offset else self.share_coordinator_in_use
        return None

    @cached_property
    def auth(self) -> AuthHelper:
        return AuthHelper(self.authorizer)

    @cached_property
    def api_keys(self) -> list[ApiVersion]:
        """The versions for ApiVersions responses; built once, because every connection requests them."""
        return [
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in self.advertised.items()
        ]

    @cached_property
    def groups(self) -> "GroupCoordinator":
        from sluice.broker.coordinator.group.coordinator import GroupCoordinator

        return GroupCoordinator(self)

    @property
    def groups_in_use(self) -> "GroupCoordinator | None":
        return self.groups if "groups" in vars(self) else None

    @cached_property
    def transactions(self) -> "TransactionCoordinator":
        from sluice.broker.coordinator.transaction.coordinator import TransactionCoordinator

        return TransactionCoordinator(self)

    @property
    def transactions_in_use(self) -> "TransactionCoordinator | None":
        return self.transactions if "transactions" in vars(self) else None

    @cached_property
    def share_coordinator(self) -> "ShareCoordinator":
        from sluice.broker.coordinator.share.coordinator import ShareCoordinator

        return ShareCoordinator(self)

    @property
    def share_coordinator_in_use(self) -> "ShareCoordinator | None":
        return self.share_coordinator if "share_coordinator" in vars(self) else None

    @cached_property
    def share_persister(self) -> "SharePersister":
        from sluice.broker.coordinator.share.persister import SharePersister

        return SharePersister(self)

    @cached_property
    def share_partitions(self) -> "SharePartitionManager":
        from sluice.broker.share.manager import SharePartitionManager

        return SharePartitionManager(self)

    @property
    def share_partitions_in_use(self) -> "SharePartitionManager | None":
        return self.share_partitions if "share_partitions" in vars(self) else None

    def disconnected(self, channel: Channel) -> None:
        if self.share_partitions_in_use is not None:
            self.share_partitions_in_use.disconnected(channel)
        if self.telemetry_in_use is not None:
            self.telemetry_in_use.disconnected(channel)

    def resume_transactions(self) -> None:
        """Complete decided transactions and abort expired ones, after a start."""
        if self.transactions_in_use is None:
            _ = self.transactions
        self.actions.complete()

    @cached_property
    def telemetry(self) -> "Telemetry":
        from sluice.broker.controller.configs.client_metrics_manager import Telemetry

        most = self.config.integer("telemetry.max.bytes")
        return Telemetry(self.cluster.client_metrics_configs, most, self.random.randbytes)

    @property
    def telemetry_in_use(self) -> "Telemetry | None":
        return self.telemetry if "telemetry" in vars(self) else None

    @cached_property
    def configs(self) -> "ConfigurationControl":
        from sluice.broker.controller.configs.control import ConfigurationControl

        return ConfigurationControl(self.node_id, self.config, self.cluster)

    def delete_topic(self, topic: Topic) -> ErrorCode:
        failed = self.cluster.delete(topic)
        if failed:
            return failed
        for broker in self.cluster.brokers.values():
            broker.topic_deleted(topic)
        return ErrorCode.NONE

    def topic_deleted(self, topic: Topic) -> None:
        """Complete the requests for a deleted topic, and drop offsets and coordinator state that belong to it."""
        for partition in topic.partitions:
            if (coordinator := self._coordinator_in(partition)) is not None:
                coordinator.shards.unload(partition)
        self.replicas.topic_deleted(topic)
        if self.groups_in_use is not None:
            self.groups_in_use.topic_deleted(topic)
        if self.share_coordinator_in_use is not None:
            self.share_coordinator_in_use.delete_topic(topic.topic_id)
        if self.share_partitions_in_use is not None:
            for partition in topic.partitions:
                self.share_partitions_in_use.drop_partition(partition)

    def new_producer_id(self) -> int:
        found = next(self._producer_ids, None)
        if found is None:
            self._producer_ids = iter(self.cluster.new_producer_ids(self.node_id))
            found = next(self._producer_ids)
        return found

    def close(self) -> None:
        self.timer.close()
        self.quotas.close()
        self._quota_resolver.close()
        if self._is_alone:
            self.cluster.close()

    def _new_authorizer(self) -> Authorizer | None:
        if not self.config.text("authorizer.class.name"):
            return None
        return Authorizer(self.config, self.cluster.acls)

    def _expire_sensors(self) -> None:
        now_ms = self.throttler.time.at(self.clock.wall_ms())
        self.quotas.expire(now_ms)
        self.throttler.histograms.expire(now_ms)
        if self.cluster.controller_quotas.mutation is not None:
            self.cluster.controller_quotas.mutation.expire(now_ms)


def brokers_of(cluster: Cluster) -> Mapping[int, Broker]:
    # The cluster itself declares only the attributes that the controller uses.
    return cast("Mapping[int, Broker]", cluster.brokers)
