"""Changes of the cluster as records of the metadata log, as Kafka's controller writes them.

A change is written here first and takes effect if the result is NONE. Follows ReplicationControlManager,
ConfigurationControlManager, ClientQuotaControlManager, AclControlManager, ScramControlManager and
ProducerIdControlManager.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sluice.broker.metadata.features import KRAFT_VERSION
from sluice.broker.metadata.topic import Partition, PartitionState, Topic
from sluice.broker.security.acl.acl import Acl
from sluice.broker.security.sasl.scram_credentials import ScramCredential, ScramMechanism
from sluice.protocol.errors import ErrorCode
from sluice.protocol.metadata import brokers, log, security, settings
from sluice.protocol.metadata import topics as of_topics
from sluice.protocol.metadata.message import MetadataMessage

from .image import MetadataImage
from .metadata_log import MetadataLog

_TOPIC = 2


class DurableMetadata:
    def __init__(self, log: MetadataLog, directory_id: bytes, defer: Callable[[Callable[[], None]], None]) -> None:
        """Use `directory_id` for all replicas; `defer` calls a function after the current event."""
        self._log = log
        self._directory_id = directory_id
        self._defer = defer
        self._changed: dict[Partition, None] = {}

    @property
    def image(self) -> MetadataImage:
        return self._log.image

    @property
    def end_offset(self) -> int:
        """The offset of the next record; Kafka uses it as the epoch of the broker that it registers."""
        return self._log.end_offset

    def append(self, records: Sequence[MetadataMessage]) -> ErrorCode:
        if self._changed:
            self._write_changed()
        return self._log.append(records) if records else ErrorCode.NONE

    def close(self) -> None:
        self._write_changed()
        self._log.close()

    def topics_created(self, topics: Iterable[tuple[Topic, Sequence[PartitionState]]]) -> ErrorCode:
        records: list[MetadataMessage] = []
        for topic, partitions in topics:
            records.append(of_topics.TopicRecord(name=topic.name, topic_id=topic.topic_id))
            records += _configs(_TOPIC, topic.name, {}, topic.config.own)
            records += self._partitions(topic.topic_id, 0, partitions)
        return self.append(records)

    def partitions_added(self, topic_id: bytes, first: int, partitions: Iterable[PartitionState]) -> ErrorCode:
        return self.append(self._partitions(topic_id, first, partitions))

    def topic_deleted(self, topic_id: bytes) -> ErrorCode:
        return self.append([of_topics.RemoveTopicRecord(topic_id=topic_id)])

    def partition_changed(self, partition: Partition) -> None:
        """Write a partition's new state soon, with others that change at the same time.

        If the write fails, the next change of the partition includes this one.
        """
        if not self._changed:
            self._defer(self._write_changed)
        self._changed[partition] = None

    def _write_changed(self) -> None:
        changed, self._changed = self._changed, {}
        self.append([record for partition in changed for record in self._changes(partition)])

    def _changes(self, partition: Partition) -> Iterator[of_topics.PartitionChangeRecord]:
        topic = self.image.topics.get(partition.topic.topic_id)
        before = None if topic is None else topic.partitions.get(partition.index)
        if before is None:
            return
        # Each record increments the partition epoch by one and, if it has a leader, the leader epoch too.
        leaders = partition.leader_epoch - before.leader_epoch
        for steps_left in range(max(partition.partition_epoch - before.partition_epoch, leaders), 1, -1):
            yield of_topics.PartitionChangeRecord(
                topic_id=partition.topic.topic_id,
                partition_id=partition.index,
                leader=partition.leader if steps_left <= leaders else of_topics.SAME_LEADER,
            )
        yield self.change(partition.topic.topic_id, before, partition.state)

    def change(
        self, topic_id: bytes, before: of_topics.PartitionRecord, after: PartitionState
    ) -> of_topics.PartitionChangeRecord:
        moved = list(after.replicas) != before.replicas
        has_elr = before.eligible_leader_replicas is not None or before.last_known_elr is not None
        return of_topics.PartitionChangeRecord(
            topic_id=topic_id,
            partition_id=before.partition_id,
            leader=after.leader if after.leader_epoch > before.leader_epoch else of_topics.SAME_LEADER,
            isr=_changed_list(before.isr, after.isr),
            replicas=_changed_list(before.replicas, after.replicas),
            adding_replicas=_changed_list(before.adding_replicas, after.adding),
            removing_replicas=_changed_list(before.removing_replicas, after.removing),
            directories=[self._directory_id] * len(after.replicas) if moved else None,
            # There is no ELR here (KIP-966).
            eligible_leader_replicas=[] if has_elr else None,
            last_known_elr=[] if has_elr else None,
        )

    def features_updated(self, levels: Mapping[str, int]) -> ErrorCode:
        # kraft.version has control records instead, which a single controller does not need.
        changed = {
            name: level
            for name, level in levels.items()
            if name != KRAFT_VERSION and level != self.image.features.get(name, 0)
        }
        return self.append(
            [settings.FeatureLevelRecord(name=name, feature_level=level) for name, level in changed.items()]
        )

    def broker_unregistered(self, node_id: int) -> ErrorCode:
        epoch = self.image.brokers[node_id].broker_epoch
        return self.append([brokers.UnregisterBrokerRecord(broker_id=node_id, broker_epoch=epoch)])

    def configured(self, kind: int, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> ErrorCode:
        return self.append(_configs(kind, name, before, after))

    def quotas_altered(self, entity: Mapping[str, str | None], changes: Mapping[str, float | None]) -> ErrorCode:
        parts = [settings.EntityData(entity_type=type_, entity_name=name) for type_, name in sorted(entity.items())]
        now = self.image.client_quotas.get(frozenset(entity.items()), {})
        return self.append(
            [
                settings.ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None)
                for key, value in changes.items()
                if now.get(key) != value
            ]
        )

    def acls_changed(self, created: Iterable[tuple[bytes, Acl]], deleted: Iterable[bytes]) -> ErrorCode:
        new = [
            security.AccessControlEntryRecord(
                id=acl_id,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl_id, acl in created
        ]
        return self.append([*new, *(security.RemoveAccessControlEntryRecord(id=acl_id) for acl_id in deleted)])

    def scram_credential_set(self, user: str, mechanism: ScramMechanism, credential: ScramCredential) -> ErrorCode:
        return self.append(
            [
                security.UserScramCredentialRecord(
                    name=user,
                    mechanism=mechanism.value,
                    salt=credential.salt,
                    stored_key=credential.stored_key,
                    server_key=credential.server_key,
                    iterations=credential.iterations,
                )
            ]
        )

    def scram_credential_removed(self, user: str, mechanism: ScramMechanism) -> ErrorCode:
        return self.append([security.RemoveUserScramCredentialRecord(name=user, mechanism=mechanism.value)])

    def producer_ids_allocated(self, node_id: int, next_producer_id: int) -> ErrorCode:
        broker = self.image.brokers.get(node_id)
        epoch = -1 if broker is None else broker.broker_epoch
        return self.append(
            [log.ProducerIdsRecord(broker_id=node_id, broker_epoch=epoch, next_producer_id=next_producer_id)]
        )

    def _partitions(self, topic_id: bytes, first: int, partitions: Iterable[PartitionState]) -> list[MetadataMessage]:
        return [
            of_topics.PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=list(partition.replicas),
                isr=list(partition.isr),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                directories=[self._directory_id] * len(partition.replicas),
            )
            for index, partition in enumerate(partitions, first)
        ]


def _changed_list(before: list[int], after: tuple[int, ...]) -> list[int] | None:
    return None if before == list(after) else list(after)


def _configs(kind: int, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[MetadataMessage]:
    return [
        settings.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]
