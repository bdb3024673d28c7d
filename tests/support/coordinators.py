"""Internal topics for tests: logs written by Apache Kafka, and coordinators that reload."""

from pathlib import Path

from sluice.broker.coordinator.common.shards import CoordinatorShards
from sluice.broker.coordinator.group.classic.group import EMPTY, ClassicGroup
from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.broker.coordinator.group.share.group import ShareGroup
from sluice.broker.coordinator.group.share.state_partitions import StatePartitions
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, Partition
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.log_validator import COORDINATOR
from tests.support.virtual_broker import VirtualBroker

_RECORDED = Path(__file__).parent / "recorded"
# One partition each of __consumer_offsets and __transaction_state, with the records of four groups and four
# transactional ids when the segments were copied from a Kafka 4.4.
RECORDED_GROUPS = _RECORDED / "consumer_offsets_of_kafka_4_4.log"
RECORDED_TRANSACTIONS = _RECORDED / "transaction_state_of_kafka_4_4.log"
ONE_PARTITION = ("offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1")


def fill(log: PartitionLog, data: bytes) -> None:
    """Append whole batches unchanged."""
    for position, header in iter_batches(data):
        batch = bytearray(data[position : position + header.size_in_bytes])
        result = log.append(memoryview(batch), header.max_timestamp, header.partition_leader_epoch, COORDINATOR)
        assert not result.error_code, result
        assert result.base_offset == header.base_offset


def broker_with_recorded(*overrides: str) -> VirtualBroker:
    """Return a broker whose internal topics have one partition each, written by Apache Kafka; nothing is loaded yet."""
    broker = VirtualBroker(*ONE_PARTITION, *overrides)
    cluster = broker.broker.cluster
    for name, recorded in ((GROUP_METADATA_TOPIC, RECORDED_GROUPS), (TRANSACTION_STATE_TOPIC, RECORDED_TRANSACTIONS)):
        fill(cluster.internal_topic(name).partitions[0].log, recorded.read_bytes())
    return broker


def internal_partitions(broker: VirtualBroker, topic: str) -> list[Partition]:
    """Return the partitions of an internal topic; none if it does not exist."""
    found = broker.broker.cluster.topics.get(topic)
    return [] if found is None else list(found.partitions)


def reload_groups(broker: VirtualBroker) -> None:
    _reload(broker, broker.broker.groups.shards, GROUP_METADATA_TOPIC)


def reload_transactions(broker: VirtualBroker) -> None:
    _reload(broker, broker.broker.transactions.shards, TRANSACTION_STATE_TOPIC)


def _reload(broker: VirtualBroker, shards: CoordinatorShards, topic: str) -> None:
    for partition in internal_partitions(broker, topic):
        shards.unload(partition)
        shards.load(partition)
    broker.broker.actions.complete()
    broker.settle()


def move_leader(broker: VirtualBroker, partition: Partition, node_id: int) -> None:
    """Make another broker the leader of a partition, with all of its log."""
    brokers = broker.cluster.brokers
    before = brokers.get(partition.leader)
    partition.leader = node_id
    partition.leader_epoch += 1
    partition.log.begin_epoch(partition.leader_epoch)
    if before is not None:
        before.stopped_leading(partition)
    after = brokers.get(node_id)
    if after is not None:
        after.started_leading(partition)
    broker.broker.actions.complete()
    broker.settle()


def pictured(broker: VirtualBroker) -> object:
    """Return the relevant state of groups and offsets."""
    groups = broker.broker.groups
    return (
        {name: _picture(group) for name, group in groups.groups.items()},
        {name: dict(groups.offsets.of_group(name)) for name in groups.groups},
        {name: set(groups.offsets.unstable(name)) for name in groups.groups},
    )


def _picture(group: object) -> object:
    if isinstance(group, ConsumerGroup):
        return (
            group.group_epoch,
            group.assignment_epoch,
            group.assignment_timestamp_ms,
            group.metadata_hash,
            group.members,
            group.static_members,
            group.target,
            group.regexes,
        )
    if isinstance(group, ShareGroup):
        epochs = group.group_epoch, group.assignment_epoch, group.assignment_timestamp_ms, group.metadata_hash
        states = group.partitions or StatePartitions()
        partitions = {topic_id: state.partitions for topic_id, state in states.initialized.items()}
        return epochs, group.members, group.target, partitions, set(states.initializing), states.deleting
    assert isinstance(group, ClassicGroup)
    return (
        group.state,
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        group.state_since_ms if group.state is EMPTY else None,
        group.static_members,
        group.subscribed_topics,
        {
            member.member_id: (member.protocols, member.assignment, member.session_timeout_ms, member.client_id)
            for member in group.members.values()
        },
    )
