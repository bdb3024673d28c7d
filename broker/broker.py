"""One broker, without sockets: what handlers see. Its classes in layers: Node, ClusterMember, BrokerNode, Broker.

The cluster has what the brokers of the process share.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, cast

from sluice.broker.controller.broker_node import BrokerNode
from sluice.broker.controller.cluster import Cluster
from sluice.broker.controller.configs.client_metrics_manager import Telemetry
from sluice.broker.coordinator.group.coordinator import GroupCoordinator
from sluice.broker.coordinator.share.coordinator import ShareCoordinator
from sluice.broker.coordinator.share.persister import SharePersister
from sluice.broker.coordinator.transaction.coordinator import TransactionCoordinator
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
from sluice.broker.on_demand import OnDemand
from sluice.broker.replica.fetch_session import FetchSessionCache
from sluice.broker.requests.channel import Channel
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.throttling.profile import PROFILES
from sluice.broker.throttling.quota_resolver import QuotaResolver
from sluice.broker.throttling.request_charges import ThrottleHistograms
from sluice.broker.throttling.throttler import Throttler
from sluice.config.property_table import RACK_AWARE
from sluice.protocol.apis.api_versions import ApiVersion
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.quotas.quota_managers import QuotaManagers

if TYPE_CHECKING:
    from sluice.broker.controller.configs.control import ConfigurationControl
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


class Broker(BrokerNode):
    """The state that requests read and change, for one thread."""

    def __init__(
        self,
        cluster: Cluster,
        advertised: Mapping[int, tuple[int, int]],
        served: Mapping[int, tuple[int, int]],
        node_id: int | None = None,
        new_throttler: type[Throttler] = Throttler,
    ) -> None:
        """`advertised` and `served`: the first and last version of each API, by key."""
        super().__init__(cluster, node_id)
        config = cluster.config
        self.started_ms = self.clock.monotonic_ms()
        self.fault_waits: DelayedOperationPurgatory | None = None
        self.throttled = DelayedOperationPurgatory("Throttle", self.timer)
        self.profile = PROFILES[config.text("quota.profile")]
        self._quota_resolver = QuotaResolver(config, self.profile.empty_client_id)
        self.quotas = QuotaManagers(config, self.profile.rate, self._quota_resolver.rules_of, cluster.quota_stores)
        self.throttler = new_throttler(
            self.profile,
            self.quotas,
            cluster.controller_quotas,
            self.clock,
            ThrottleHistograms(config.integer("sluice.metrics.client.ids.max")),
            cluster.journal,
            is_shadow=config.text("sluice.quota.mode") == "shadow",
        )
        self.selects_replicas = config.value("replica.selector.class") == RACK_AWARE
        self.advertised = advertised
        self.served = served
        if not self.features.by_name:
            release = config.text("sluice.kafka.release")
            self.features.by_name = features_of_new_cluster(self.config, release, served)
        self.fetch_sessions = FetchSessionCache(
            self.config.integer("max.incremental.fetch.session.cache.slots"),
            self.config.integer("sluice.fetch.session.partitions.max"),
            self.random,
        )
        self.auto_creates_topics = config.boolean("auto.create.topics.enable")
        self.deletes_topics = config.boolean("delete.topic.enable")
        self.max_fetch_bytes = config.integer("fetch.max.bytes")
        self.scheduler.schedule(_SENSOR_EXPIRY_INTERVAL_MS, self._expire_sensors)
        if self._quota_resolver.callback is not None:
            self.scheduler.schedule(
                _METADATA_CHECK_MS, lambda: self._quota_resolver.update_metadata(cluster.topics.values(), self.quotas)
            )
        cluster.join(self)

    def quota_time_ms(self) -> int:
        """Return wall-clock milliseconds that step back by less than a quota window."""
        return self.throttler.time.at(self.clock.wall_ms())

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
        shares = Broker.share_partitions.if_made(self)
        if shares is not None:
            shares.drop_partition(partition)
        self.replicas.complete_delayed_operations(partition)

    def _coordinator_in(self, partition: Partition) -> Coordinator | None:
        # None also for an unused coordinator without state.
        if partition.topic.name == GROUP_METADATA_TOPIC:
            return self.groups if partition.log.log_end_offset else Broker.groups.if_made(self)
        if partition.topic.name == TRANSACTION_STATE_TOPIC:
            return self.transactions if partition.log.log_end_offset else Broker.transactions.if_made(self)
        if partition.topic.name == SHARE_GROUP_STATE_TOPIC:
            return self.share_coordinator if partition.log.log_end_offset else Broker.share_coordinator.if_made(self)
        return None

    def complete_transaction(self, partition: Partition, producer_id: int, *, committed: bool) -> None:
        groups = Broker.groups.if_made(self)
        if groups is not None:
            groups.complete_transaction(partition, producer_id, committed)

    @cached_property
    def api_keys(self) -> list[ApiVersion]:
        """The versions for ApiVersions responses; built once, because every connection requests them."""
        return [
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in self.advertised.items()
        ]

    @OnDemand
    def groups(self) -> GroupCoordinator:
        return GroupCoordinator(self, self.share_persister)

    @OnDemand
    def transactions(self) -> TransactionCoordinator:
        return TransactionCoordinator(self)

    @OnDemand
    def share_coordinator(self) -> ShareCoordinator:
        return ShareCoordinator(self)

    @cached_property
    def share_persister(self) -> SharePersister:
        return SharePersister(self, lambda leader: brokers_of(self.cluster)[leader.node_id].share_coordinator)

    @OnDemand
    def share_partitions(self) -> "SharePartitionManager":
        from sluice.broker.share.manager import SharePartitionManager

        return SharePartitionManager(self, self.share_persister)

    def disconnected(self, channel: Channel) -> None:
        for part in (Broker.share_partitions.if_made(self), Broker.telemetry.if_made(self)):
            if part is not None:
                part.disconnected(channel)

    def resume_transactions(self) -> None:
        """Complete decided transactions and abort expired ones, after a start."""
        _ = self.transactions  # made, which loads them
        self.actions.complete()

    @OnDemand
    def telemetry(self) -> Telemetry:
        most = self.config.integer("telemetry.max.bytes")
        return Telemetry(self.cluster.client_metrics_configs, most, self.random.randbytes)

    @cached_property
    def configs(self) -> "ConfigurationControl":
        from sluice.broker.controller.configs.control import ConfigurationControl

        return ConfigurationControl(self.node_id, self.config, self.cluster)

    def delete_topic(self, topic: Topic) -> ErrorCode:
        failed = self.cluster.delete(topic)
        if failed:
            return failed
        for broker in brokers_of(self.cluster).values():
            broker._topic_deleted(topic)
        return ErrorCode.NONE

    def _topic_deleted(self, topic: Topic) -> None:
        """Complete the requests for a deleted topic, and drop offsets and coordinator state that belong to it."""
        for partition in topic.partitions:
            if (coordinator := self._coordinator_in(partition)) is not None:
                coordinator.shards.unload(partition)
        self.replicas.topic_deleted(topic)
        if (groups := Broker.groups.if_made(self)) is not None:
            groups.topic_deleted(topic)
        if (share_coordinator := Broker.share_coordinator.if_made(self)) is not None:
            share_coordinator.delete_topic(topic.topic_id)
        if (shares := Broker.share_partitions.if_made(self)) is not None:
            for partition in topic.partitions:
                shares.drop_partition(partition)

    def close(self) -> None:
        self.timer.close()
        self.quotas.close()
        self._quota_resolver.close()

    def _expire_sensors(self) -> None:
        now_ms = self.throttler.time.at(self.clock.wall_ms())
        self.quotas.expire(now_ms)
        self.throttler.histograms.expire(now_ms)
        if self.cluster.controller_quotas.mutation is not None:
            self.cluster.controller_quotas.mutation.expire(now_ms)


def brokers_of(cluster: Cluster) -> Mapping[int, Broker]:
    # The cluster itself declares only the attributes that the controller uses.
    return cast("Mapping[int, Broker]", cluster.brokers)


Handle = Callable[[RequestContext, Message, Broker], Message | Outcome]
