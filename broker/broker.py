"""One broker: its configuration, its state, and the parts that work on it. No sockets: those are the server's."""

from collections.abc import Callable
from functools import cached_property, partial
from random import Random  # noqa: TID251  (the type of what is injected; nothing is drawn from the module itself)
from typing import TYPE_CHECKING

from sluice.clock import Clock
from sluice.config import Config
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.purgatory.timer import Timer
from sluice.quotas.entity import EmptyClientId
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.quotas.store import QuotaStore

from .cluster import Cluster, Partition, Topic
from .dispatch import Dispatcher
from .enforcement import PROFILES, Enforcement
from .features import listed_features
from .log.log_manager import LogManager
from .releases import advertised_by, served_as

if TYPE_CHECKING:
    from sluice.protocol.apis.api_versions import ApiVersion
    from sluice.quotas.client_quotas import ClientQuotas

    from .configs.control import ConfigurationControl
    from .fetch_session import FetchSessionCache
    from .groups.coordinator import GroupCoordinator
    from .telemetry import Telemetry
    from .transactions.coordinator import TransactionCoordinator

# Kafka's Metrics looks for expired sensors this often.
_SENSOR_EXPIRY_INTERVAL_MS = 30_000
# A fresh broker's first producer id; Kafka's controller hands out blocks that begin with 0.
_FIRST_PRODUCER_ID = 0
# GetTelemetrySubscriptions and PushTelemetry: clients that find them advertised use them.
_OF_TELEMETRY = (71, 72)


class _Every(DelayedOperation):
    """Housekeeping that repeats for as long as the broker lives."""

    __slots__ = ("_action", "_purgatory_of")

    def __init__(self, interval_ms: float, action: Callable[[], None], purgatory: DelayedOperationPurgatory) -> None:
        super().__init__(interval_ms)
        self._action = action
        self._purgatory_of = purgatory

    def on_complete(self) -> None:
        self._purgatory_of.delay(_Every(self.delay_ms, self._action, self._purgatory_of))
        self._action()


class _Later(DelayedOperation):
    """Something that happens once its time has come: a simulated replica has fetched, say."""

    __slots__ = ("_action",)

    def __init__(self, delay_ms: float, action: Callable[[], None]) -> None:
        super().__init__(delay_ms)
        self._action = action

    def on_complete(self) -> None:
        self._action()


class Broker:
    """Everything that requests read and change. One thread owns it."""

    def __init__(self, config: Config, clock: Clock, random: Random) -> None:
        self.config = config
        self.clock = clock
        self.random = random
        self.timer = Timer(clock)
        self.fetches = DelayedOperationPurgatory(
            "Fetch", self.timer, config.integer("fetch.purgatory.purge.interval.requests")
        )
        self.produces = DelayedOperationPurgatory(
            "Produce", self.timer, config.integer("producer.purgatory.purge.interval.requests")
        )
        # Kafka's purge interval for these is 1: they are few, and may hold much.
        self.delete_records = DelayedOperationPurgatory("DeleteRecords", self.timer, 1)
        self.throttled = DelayedOperationPurgatory("Throttle", self.timer)
        self.housekeeping = DelayedOperationPurgatory("Housekeeping", self.timer)
        self.profile = PROFILES[config.text("quota.profile")]
        self.produce_quotas = self._quota_manager("Produce")
        self.fetch_quotas = self._quota_manager("Fetch")
        self._quota_stores = {
            "producer_byte_rate": self._quota_store(self.produce_quotas, "quota.producer"),
            "consumer_byte_rate": self._quota_store(self.fetch_quotas, "quota.consumer"),
        }
        self.enforcement = Enforcement(self.profile, self.produce_quotas, self.fetch_quotas, self.throttled)
        self.logs = LogManager(config.integer("sluice.log.memory.bytes"))
        self.cluster = Cluster(config, self.logs, random.randbytes)
        self.dispatcher = Dispatcher(self, clock, self.enforcement)
        release = config.text("sluice.kafka.release")
        self.advertised = advertised_by(release)
        self.served = served_as(release)
        if not config.boolean("sluice.telemetry"):
            for api_key in _OF_TELEMETRY:
                self.advertised.pop(api_key, None)
                self.served.pop(api_key, None)
        self.features = listed_features(release, self.served)
        self.auto_creates_topics = config.boolean("auto.create.topics.enable")
        self.deletes_topics = config.boolean("delete.topic.enable")
        self.max_fetch_bytes = config.integer("fetch.max.bytes")
        self._replication_delay_ms = config.integer("sluice.replication.delay.ms")
        self._next_producer_id = _FIRST_PRODUCER_ID
        self.every(_SENSOR_EXPIRY_INTERVAL_MS, self._expire_sensors)
        self.every(config.integer("log.retention.check.interval.ms"), self._enforce_retention)

    @cached_property
    def api_keys(self) -> "list[ApiVersion]":
        """What is advertised, as ApiVersions tells it: made once, for every connection asks."""
        from sluice.protocol.apis.api_versions import ApiVersion  # with the first that asks

        return [
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, (first, last) in self.advertised.items()
        ]

    @cached_property
    def fetch_sessions(self) -> "FetchSessionCache":
        """The sessions of fetching clients, there from the first that opens one."""
        from .fetch_session import FetchSessionCache  # not before: a start is not to wait for it

        return FetchSessionCache(self.config.integer("max.incremental.fetch.session.cache.slots"), self.random)

    @property
    def fetch_sessions_in_use(self) -> "FetchSessionCache | None":
        """The sessions of fetching clients; None where no client has opened one."""
        return self.fetch_sessions if "fetch_sessions" in vars(self) else None

    @cached_property
    def groups(self) -> "GroupCoordinator":
        """The coordinator of groups, there from when a client first asks for one."""
        from .groups.coordinator import GroupCoordinator  # not before: a start is not to wait for it

        return GroupCoordinator(self)

    @property
    def groups_in_use(self) -> "GroupCoordinator | None":
        """The coordinator of groups; None where no client has asked for one."""
        return self.groups if "groups" in vars(self) else None

    @cached_property
    def transactions(self) -> "TransactionCoordinator":
        """The coordinator of transactions, made when one is first asked about."""
        from .transactions.coordinator import TransactionCoordinator  # only those who use it wait for it

        return TransactionCoordinator(self)

    def every(self, interval_ms: float, action: Callable[[], None]) -> None:
        """Does something again and again, the first time in `interval_ms`."""
        self.housekeeping.delay(_Every(interval_ms, action, self.housekeeping))

    @cached_property
    def client_quotas(self) -> "ClientQuotas":
        """The quotas that can be altered while the broker runs; loaded with the first request that asks for them."""
        from sluice.quotas.client_quotas import ClientQuotas

        return ClientQuotas(self._quota_stores)

    @cached_property
    def telemetry(self) -> "Telemetry":
        """What clients tell of themselves, there from when the first of them does."""
        from .telemetry import Telemetry

        return Telemetry(self.configs.client_metrics, self.config.integer("telemetry.max.bytes"), self.random.randbytes)

    @property
    def telemetry_in_use(self) -> "Telemetry | None":
        """The same; None where no client has told anything."""
        return self.telemetry if "telemetry" in vars(self) else None

    @cached_property
    def configs(self) -> "ConfigurationControl":
        """What can be altered while the broker runs; loaded with the first request that asks for it."""
        from .configs.control import ConfigurationControl

        return ConfigurationControl(self.cluster)

    def appended(self, partition: Partition) -> None:
        """Something was appended: whoever may read it now goes on, at once or when the replicas have it."""
        if partition.log.has_followers:
            replicated = partial(self.replicated, partition, partition.log.log_end_offset)
            self.housekeeping.delay(_Later(self._replication_delay_ms, replicated))
        else:
            self.dispatcher.check_after_turn(self.fetches, partition)

    def replicated(self, partition: Partition, offset: int) -> None:
        """All replicas have what is before `offset`: whoever waited for that goes on."""
        if not partition.deleted and partition.log.advance_high_watermark(offset):
            self.fetches.check_and_complete(partition)
            self.produces.check_and_complete(partition)

    def records_deleted(self, partition: Partition) -> None:
        """The leader let records go; the replicas' logs start where its does once they have fetched again."""
        if partition.log.has_followers:
            followed = partial(self._replicas_follow, partition, partition.log.log_start_offset)
            self.housekeeping.delay(_Later(self._replication_delay_ms, followed))

    def delete_topic(self, topic: Topic) -> None:
        """Deletes a topic, and answers what waited for its partitions."""
        self.cluster.delete(topic)
        for partition in topic.partitions:
            self.dispatcher.check_after_turn(self.fetches, partition)
            self.produces.check_and_complete(partition)
            self.delete_records.check_and_complete(partition)
        if self.groups_in_use is not None:
            self.groups_in_use.forget_topic(topic)

    def new_producer_id(self) -> int:
        """A producer id that nobody had before."""
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def later(self, delay_ms: float, action: Callable[[], None]) -> None:
        """Does something once, when time has passed."""
        self.housekeeping.delay(_Later(delay_ms, action))

    def close(self) -> None:
        """Stops time: nothing that waits completes any more."""
        self.timer.close()

    def _replicas_follow(self, partition: Partition, log_start_offset: int) -> None:
        partition.replicas_log_start_offset = max(partition.replicas_log_start_offset, log_start_offset)
        self.delete_records.check_and_complete(partition)

    def _quota_manager(self, kind: str) -> ClientQuotaManager:
        config = self.config
        window = QuotaConfig(
            num_samples=config.integer("quota.window.num"),
            window_ms=config.integer("quota.window.size.seconds") * 1000,  # seconds -> ms
            rate=self.profile.rate,
        )
        shares: EmptyClientId = "shares_default" if self.profile.empty_client_id_shares_default else "unlimited"
        return ClientQuotaManager(kind, window, empty_client_id=shares)

    def _quota_store(self, manager: ClientQuotaManager, prefix: str) -> QuotaStore:
        return QuotaStore(manager, self.config.rate(f"{prefix}.default"), self.config.rates(f"{prefix}.override"))

    def _expire_sensors(self) -> None:
        now_ms = self.clock.wall_ms()
        self.produce_quotas.expire(now_ms)
        self.fetch_quotas.expire(now_ms)

    def _enforce_retention(self) -> None:
        now_ms = self.clock.wall_ms()
        self.logs.enforce_retention(now_ms)
        self.logs.expire_producers(now_ms)
