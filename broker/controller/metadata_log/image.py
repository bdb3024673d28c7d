"""The metadata image: the state of the cluster after the last record of its metadata log.

Follows MetadataImage and its deltas, and PartitionRegistration.merge. Different on purpose: the image is changed in
place, because it has one reader; unused data (controllers, tokens, the ELR) is kept for snapshots. Changes to an
unregistered broker are ignored. Records of a transaction (KIP-868) apply at its end.
"""

from collections.abc import Callable, Iterator
from operator import attrgetter, itemgetter
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sluice.protocol.metadata import brokers, log, security, settings
from sluice.protocol.metadata import topics as of_topics
from sluice.protocol.metadata.message import MetadataMessage

M = TypeVar("M", bound=MetadataMessage)
K = TypeVar("K")
V = TypeVar("V")
Replay = Callable[["MetadataImage", M], None]
QuotaEntity = frozenset[tuple[str, str | None]]

METADATA_VERSION = "metadata.version"
_TOPIC = 2
_NO_BROKER = -1


class InconsistentRecordError(Exception):
    """A record that refers to something that does not exist."""


class TopicImage(Struct, eq=False):
    name: str
    topic_id: bytes
    partitions: dict[int, of_topics.PartitionRecord] = {}


class MetadataImage:
    def __init__(self) -> None:
        self.features: dict[str, int] = {}
        self.brokers: dict[int, brokers.RegisterBrokerRecord] = {}
        self.controllers: dict[int, brokers.RegisterControllerRecord] = {}
        self.topics: dict[bytes, TopicImage] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.next_producer_id = 0
        self.acls: dict[bytes, security.AccessControlEntryRecord] = {}
        self.scram_credentials: dict[tuple[int, str], security.UserScramCredentialRecord] = {}
        self.delegation_tokens: dict[str, security.DelegationTokenRecord] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._transaction: list[MetadataMessage] | None = None

    @property
    def in_transaction(self) -> bool:
        return self._transaction is not None

    def replay(self, message: MetadataMessage) -> None:
        if self._transaction is not None:
            if not isinstance(message, log.EndTransactionRecord | log.AbortTransactionRecord):
                self._transaction.append(message)
                return
            records, self._transaction = self._transaction, None
            if isinstance(message, log.EndTransactionRecord):
                for record in records:
                    self.replay(record)
        elif isinstance(message, log.BeginTransactionRecord):
            self._transaction = []
        elif type(message) in _KEPT:
            name, key = _KEPT[type(message)]
            getattr(self, name)[key(message)] = message
        elif type(message) in _REMOVED:
            name, key = _REMOVED[type(message)]
            getattr(self, name).pop(key(message), None)
        elif type(message) not in _IGNORED:
            _REPLAY[type(message)](self, message)

    def records(self) -> Iterator[MetadataMessage]:
        # metadata.version first: readers need it for the others.
        for name in sorted(self.features, key=lambda name: (name != METADATA_VERSION, name)):
            yield settings.FeatureLevelRecord(name=name, feature_level=self.features[name])
        yield from self.brokers.values()
        yield from self.controllers.values()
        for topic in self.topics.values():
            yield of_topics.TopicRecord(name=topic.name, topic_id=topic.topic_id)
            yield from topic.partitions.values()
        for (kind, resource), configs in self.configs.items():
            for key, value in configs.items():
                yield settings.ConfigRecord(resource_type=kind, resource_name=resource, name=key, value=value)
        for entity, quotas in self.client_quotas.items():
            parts = [
                settings.EntityData(entity_type=type_, entity_name=name)
                for type_, name in sorted(entity, key=itemgetter(0))
            ]
            for key, bound in quotas.items():
                yield settings.ClientQuotaRecord(entity=parts, key=key, value=bound)
        if self.next_producer_id:
            yield log.ProducerIdsRecord(broker_id=_NO_BROKER, next_producer_id=self.next_producer_id)
        yield from self.acls.values()
        yield from self.scram_credentials.values()
        yield from self.delegation_tokens.values()

    # -- topics --------------------------------------------------------------------------------------------------------

    def _add_topic(self, record: of_topics.TopicRecord) -> None:
        self.topics[record.topic_id] = TopicImage(record.name, record.topic_id)
        self._topic_ids[record.name] = record.topic_id

    def _add_partition(self, record: of_topics.PartitionRecord) -> None:
        self._topic(record.topic_id).partitions[record.partition_id] = record

    def _change_partition(self, change: of_topics.PartitionChangeRecord) -> None:
        topic = self._topic(change.topic_id)
        before = topic.partitions.get(change.partition_id)
        if before is None:
            raise InconsistentRecordError(f"unknown partition {topic.name}-{change.partition_id}")
        new_leader = change.leader != of_topics.SAME_LEADER
        recovery = change.leader_recovery_state
        topic.partitions[change.partition_id] = replace(
            before,
            replicas=_changed(before.replicas, change.replicas),
            isr=_changed(before.isr, change.isr),
            removing_replicas=_changed(before.removing_replicas, change.removing_replicas),
            adding_replicas=_changed(before.adding_replicas, change.adding_replicas),
            leader=change.leader if new_leader else before.leader,
            leader_recovery_state=before.leader_recovery_state if recovery < 0 else recovery,
            leader_epoch=before.leader_epoch + new_leader,
            partition_epoch=before.partition_epoch + 1,
            directories=_changed(before.directories, change.directories),
            eligible_leader_replicas=_elr(before.eligible_leader_replicas, change.eligible_leader_replicas),
            last_known_elr=_elr(before.last_known_elr, change.last_known_elr),
        )

    def _remove_topic(self, record: of_topics.RemoveTopicRecord) -> None:
        topic = self._topic(record.topic_id)
        del self.topics[topic.topic_id]
        del self._topic_ids[topic.name]
        self.configs.pop((_TOPIC, topic.name), None)

    def _clear_elr(self, record: of_topics.ClearElrRecord) -> None:
        topic_id = self._topic_ids.get(record.topic_name)
        topics = self.topics.values() if not record.topic_name else [] if topic_id is None else [self.topics[topic_id]]
        for topic in topics:
            for index, partition in topic.partitions.items():
                topic.partitions[index] = replace(partition, eligible_leader_replicas=None, last_known_elr=None)

    def _topic(self, topic_id: bytes) -> TopicImage:
        topic = self.topics.get(topic_id)
        if topic is None:
            raise InconsistentRecordError(f"unknown topic id {topic_id.hex()}")
        return topic

    # -- configs, quotas, features -------------------------------------------------------------------------------------

    def _configure(self, record: settings.ConfigRecord) -> None:
        _set(self.configs, (record.resource_type, record.resource_name), record.name, record.value)

    def _set_quota(self, record: settings.ClientQuotaRecord) -> None:
        entity = frozenset((part.entity_type, part.entity_name) for part in record.entity)
        _set(self.client_quotas, entity, record.key, None if record.remove else record.value)

    def _set_feature(self, record: settings.FeatureLevelRecord) -> None:
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)

    def _set_producer_ids(self, record: log.ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    # -- brokers and controllers ---------------------------------------------------------------------------------------

    def _change_broker(self, record: brokers.BrokerRegistrationChangeRecord) -> None:
        before = self.brokers.get(record.broker_id)
        if before is not None and before.broker_epoch == record.broker_epoch:
            cordoned = record.cordoned_log_dirs
            self.brokers[record.broker_id] = replace(
                before,
                fenced=record.fenced > 0 if record.fenced else before.fenced,
                in_controlled_shutdown=before.in_controlled_shutdown or record.in_controlled_shutdown > 0,
                log_dirs=record.log_dirs or before.log_dirs,
                cordoned_log_dirs=before.cordoned_log_dirs if cordoned is None else cordoned,
            )

    def _fence_broker(self, record: brokers.FenceBrokerRecord) -> None:
        self._change_broker(
            brokers.BrokerRegistrationChangeRecord(broker_id=record.id, broker_epoch=record.epoch, fenced=1)
        )

    def _unfence_broker(self, record: brokers.UnfenceBrokerRecord) -> None:
        self._change_broker(
            brokers.BrokerRegistrationChangeRecord(broker_id=record.id, broker_epoch=record.epoch, fenced=-1)
        )

    # -- security ------------------------------------------------------------------------------------------------------

    def _remove_acl(self, record: security.RemoveAccessControlEntryRecord) -> None:
        if self.acls.pop(record.id, None) is None:
            raise InconsistentRecordError(f"unknown ACL id {record.id.hex()}")


def _set(resources: dict[K, dict[str, V]], resource: K, key: str, value: V | None) -> None:
    own = resources.setdefault(resource, {})
    if value is None:
        own.pop(key, None)
    else:
        own[key] = value
    if not own:
        del resources[resource]


def _changed(before: list[V], after: list[V] | None) -> list[V]:
    return before if after is None else after


def _elr(before: list[int] | None, after: list[int] | None) -> list[int] | None:
    return before if after is None else after or None  # Kafka writes null for an empty list


# Records that are kept as they are, and those that remove them: the attribute of the image, and the key.
_KEPT: dict[type[MetadataMessage], tuple[str, Callable[[MetadataMessage], object]]] = {
    brokers.RegisterBrokerRecord: ("brokers", attrgetter("broker_id")),
    brokers.RegisterControllerRecord: ("controllers", attrgetter("controller_id")),
    security.AccessControlEntryRecord: ("acls", attrgetter("id")),
    security.UserScramCredentialRecord: ("scram_credentials", attrgetter("mechanism", "name")),
    security.DelegationTokenRecord: ("delegation_tokens", attrgetter("token_id")),
}
_REMOVED: dict[type[MetadataMessage], tuple[str, Callable[[MetadataMessage], object]]] = {
    brokers.UnregisterBrokerRecord: ("brokers", attrgetter("broker_id")),
    brokers.UnregisterControllerRecord: ("controllers", attrgetter("controller_id")),
    security.RemoveUserScramCredentialRecord: ("scram_credentials", attrgetter("mechanism", "name")),
    security.RemoveDelegationTokenRecord: ("delegation_tokens", attrgetter("token_id")),
}
# A no-op, the state of a ZooKeeper migration, and the end of a transaction within a snapshot.
_IGNORED = {log.NoOpRecord, log.ZkMigrationStateRecord, log.EndTransactionRecord, log.AbortTransactionRecord}
_REPLAY: dict[type[MetadataMessage], Replay] = {  # type: ignore[type-arg]  # each value accepts its key's type
    of_topics.TopicRecord: MetadataImage._add_topic,
    of_topics.PartitionRecord: MetadataImage._add_partition,
    of_topics.PartitionChangeRecord: MetadataImage._change_partition,
    of_topics.RemoveTopicRecord: MetadataImage._remove_topic,
    of_topics.ClearElrRecord: MetadataImage._clear_elr,
    settings.ConfigRecord: MetadataImage._configure,
    settings.ClientQuotaRecord: MetadataImage._set_quota,
    settings.FeatureLevelRecord: MetadataImage._set_feature,
    log.ProducerIdsRecord: MetadataImage._set_producer_ids,
    brokers.BrokerRegistrationChangeRecord: MetadataImage._change_broker,
    brokers.FenceBrokerRecord: MetadataImage._fence_broker,
    brokers.UnfenceBrokerRecord: MetadataImage._unfence_broker,
    security.RemoveAccessControlEntryRecord: MetadataImage._remove_acl,
}
