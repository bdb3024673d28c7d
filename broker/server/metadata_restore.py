"""Restoration of a cluster from its metadata log, before the first request.

As when KRaft's brokers and controller start, all settings take effect, and each partition elects a leader, with a new
epoch even if it is the same. Settings without effect here stay in the log and are listed in one warning.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial

from sluice.broker.broker import Broker, brokers_of
from sluice.broker.controller.cluster import Cluster
from sluice.broker.controller.configs.resource import BROKER, CLIENT_METRICS, GROUP, TOPIC
from sluice.broker.controller.metadata_log.batches import LATEST_METADATA_VERSION
from sluice.broker.controller.metadata_log.durable_metadata import DurableMetadata
from sluice.broker.controller.metadata_log.image import METADATA_VERSION, MetadataImage, TopicImage
from sluice.broker.controller.metadata_log.metadata_log import open_metadata_log
from sluice.broker.controller.metadata_log.recovery import TRUNCATE_DAMAGED
from sluice.broker.metadata.features import KRAFT_VERSION
from sluice.broker.metadata.topic import NO_LEADER, PartitionState
from sluice.broker.security.acl.acl import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from sluice.broker.security.sasl.scram_credentials import ScramCredential, ScramMechanism
from sluice.config.broker_config import refused_topic_configs
from sluice.config.property_table import TOPIC_PROPERTIES
from sluice.errors import SluiceError
from sluice.protocol.metadata.brokers import Endpoint, RegisterBrokerRecord, SupportedFeature
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.security import AccessControlEntryRecord, UserScramCredentialRecord
from sluice.protocol.metadata.topics import PartitionRecord
from sluice.protocol.uuids import random_uuid

log = logging.getLogger("sluice.broker")

_SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


def open_metadata(
    cluster: Cluster, log_dir: str, directory_id: bytes, make_room: Callable[[], bool] = lambda: False
) -> DurableMetadata:
    first = next(iter(brokers_of(cluster).values()))
    # kraft.version has control records instead, which a single controller does not need.
    levels = {name: first.features.level(name) for name in first.features.by_name if name != KRAFT_VERSION}
    features = {METADATA_VERSION: LATEST_METADATA_VERSION} | levels
    truncates = first.config.boolean(TRUNCATE_DAMAGED)
    metadata_log = open_metadata_log(
        log_dir, first.node_id, features, first.clock.wall_ms, make_room=make_room, truncate_damaged=truncates
    )
    metadata = DurableMetadata(metadata_log, directory_id, partial(cluster.runtime.scheduler.schedule_once, 0))
    registrations = [
        _registration(broker, number, metadata.end_offset + number, directory_id)
        for number, broker in enumerate(brokers_of(cluster).values())
    ]
    if metadata.append([*registrations, *_elections(metadata, cluster.brokers.keys())]):
        raise SluiceError(f"{log_dir}: cannot write the metadata log; check its permissions and disk space")
    fill(cluster, metadata.image)
    return metadata


def _registration(broker: Broker, number: int, epoch: int, directory_id: bytes) -> RegisterBrokerRecord:
    # With the configured ports, even 0, as the broker does not listen yet.
    return RegisterBrokerRecord(
        broker_id=broker.node_id,
        incarnation_id=random_uuid(broker.random.randbytes),
        broker_epoch=epoch,
        end_points=[
            Endpoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=_SECURITY_PROTOCOLS[broker.config.security_protocol(listener.name)],
            )
            for listener in broker.config.listeners(number)
        ],
        features=[
            SupportedFeature(
                name=feature.name, min_supported_version=feature.min_level, max_supported_version=feature.max_level
            )
            for feature in broker.features.by_name.values()
        ],
        rack=broker.rack,
        fenced=False,
        log_dirs=[directory_id],
    )


def _elections(metadata: DurableMetadata, node_ids: Collection[int]) -> list[MetadataMessage]:
    return [
        metadata.change(topic.topic_id, partition, _elected(partition, node_ids))
        for topic in metadata.image.topics.values()
        for partition in topic.partitions.values()
    ]


def _elected(partition: PartitionRecord, node_ids: Collection[int]) -> PartitionState:
    """Elect a replica in sync, else any existing one: all share one log."""
    before = _state(partition)
    here = tuple(node_id for node_id in before.replicas if node_id in node_ids)
    in_sync = tuple(node_id for node_id in before.isr if node_id in here) or here[:1]
    leader = next((node_id for node_id in here if node_id in in_sync), NO_LEADER)
    isr = in_sync if leader != NO_LEADER else before.isr
    epochs = before.leader_epoch + 1, before.partition_epoch + 1
    return PartitionState(before.replicas, isr, leader, *epochs, before.adding, before.removing)


def _state(partition: PartitionRecord) -> PartitionState:
    return PartitionState(
        tuple(partition.replicas),
        tuple(partition.isr),
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        tuple(partition.adding_replicas),
        tuple(partition.removing_replicas),
    )


def fill(cluster: Cluster, image: MetadataImage) -> None:
    ignored: list[str] = []
    # Broker configs first: they are defaults of topics.
    for kind in (BROKER, GROUP, CLIENT_METRICS):
        for (resource_kind, name), own in image.configs.items():
            if resource_kind == kind:
                ignored += _configure(cluster, kind, name, own)
    for topic in image.topics.values():
        ignored += _add_topic(cluster, topic, image.configs.get((TOPIC, topic.name), {}))
    for entity, quotas in image.client_quotas.items():
        ignored += _set_quotas(cluster, dict(entity), quotas)
    for acl_id, acl in image.acls.items():
        ignored += _add_acl(cluster, acl_id, acl)
    for record in image.scram_credentials.values():
        ignored += _add_credential(cluster, record)
    cluster.next_producer_id = image.next_producer_id
    _set_feature_levels(cluster, image.features)
    if ignored:
        log.warning("settings in the data directory without effect", extra={"settings": ", ".join(ignored)})


def _set_feature_levels(cluster: Cluster, levels: Mapping[str, int]) -> None:
    """Set the levels of the log. Those of a log with metadata.version alone are the defaults of that version."""
    for name, feature in list(cluster.features.by_name.items()):
        default = feature.default_level(levels.get(METADATA_VERSION, 0)) if len(levels) == 1 else 0
        level = levels.get(name, default)
        if name != KRAFT_VERSION and feature.min_level <= level <= feature.max_level:
            cluster.features.set_level(name, level)


def _add_topic(cluster: Cluster, topic: TopicImage, configs: Mapping[str, str]) -> list[str]:
    known = {
        key: value
        for key, value in configs.items()
        if key in TOPIC_PROPERTIES and refused_topic_configs(cluster.config, {key: value}) is None
    }
    partitions = [_state(partition) for _, partition in sorted(topic.partitions.items())]
    cluster.restore(topic.name, topic.topic_id, known, partitions)
    return [f"topic {topic.name} {key}" for key in configs.keys() - known.keys()]


def _configure(cluster: Cluster, kind: int, name: str, own: Mapping[str, str]) -> list[str]:
    some_broker = next(iter(brokers_of(cluster).values()))
    broker = brokers_of(cluster).get(int(name)) if kind == BROKER and name.isdecimal() else some_broker
    if broker is None:  # a broker outside the cluster has no configs here
        return []
    store = broker.configs.stores[kind]
    known = {key: value for key, value in own.items() if store.validate(name, {key: value}) is None}
    if known:
        store.configure(name, known)
    kind_name = {BROKER: "broker", GROUP: "group", CLIENT_METRICS: "client-metrics"}[kind]
    return [f"{kind_name} {name or '<default>'} {key}" for key in own.keys() - known.keys()]


def _set_quotas(cluster: Cluster, entity: Mapping[str, str | None], quotas: Mapping[str, float]) -> list[str]:
    known = {key: value for key, value in quotas.items() if cluster.client_quotas.refusal(entity, {key: value}) is None}
    if known:
        cluster.client_quotas.alter(entity, known)
    names = " ".join(f"{type_}={name or '<default>'}" for type_, name in sorted(entity.items()))
    return [f"quota {names} {key}" for key in quotas.keys() - known.keys()]


def _add_acl(cluster: Cluster, acl_id: bytes, record: AccessControlEntryRecord) -> list[str]:
    acl = Acl(
        ResourceType(record.resource_type),
        record.resource_name,
        PatternType(record.pattern_type),
        record.principal,
        record.host,
        AclOperation(record.operation),
        AclPermissionType(record.permission_type),
    )
    if 0 in (acl.resource_type, acl.pattern_type, acl.operation, acl.permission_type):  # UNKNOWN: from a newer Kafka
        return [f"ACL of {acl.principal} on {acl.resource_name}"]
    cluster.acls.add(acl_id, acl)
    return []


def _add_credential(cluster: Cluster, record: UserScramCredentialRecord) -> list[str]:
    mechanism = next((one for one in ScramMechanism if one.value == record.mechanism), None)
    if mechanism is None:
        return [f"SCRAM credential of {record.name}, mechanism {record.mechanism}"]
    new = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
    cluster.scram_credentials.put(record.name, mechanism, new)
    return []
