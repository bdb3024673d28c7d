"""Names of topics in every API: each has a use, and none of them damages the data directory.

The answers are compared with Kafka's by tools/differential/cases/reserved_names.py.
"""

from pathlib import Path

import pytest

from sluice.broker.exchange.registry import HANDLERS
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from sluice.protocol.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.message import Message, fields_of
from tests.support import topic_requests
from tests.support.groups import commit_request, fetch_request, fetched
from tests.support.records import fetch, fetched_bytes, produce, values
from tests.support.virtual_broker import VirtualBroker
from tools.differential.cases.reserved_names import INTERNAL, METADATA, ORDINARY, UNCREATABLE

KEPT = "kept"
# As Kafka's ResourceType, these name topics in fields without an entity.
BY_RESOURCE = {
    "DescribeConfigs",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "CreateAcls",
    "DescribeAcls",
    "DeleteAcls",
    "FindCoordinator",
}


def fields_used(message: Message, path: str = "") -> set[str]:
    """Return the paths of the fields with the topic that a request names."""
    found = set()
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Message):
                found |= fields_used(one, f"{path}{field.name}.")
            elif field.meaning.entity in topic_requests.ENTITIES and one in (TARGET.name, TARGET.topic_id):
                found.add(path + field.name)
    return found


TARGET = topic_requests.Target("the name", topic_requests.UNKNOWN_ID, "key")


def test_each_field_that_names_a_topic_has_a_use() -> None:
    named = {
        (api.name, path)
        for key, api in API_KEYS.items()
        if key in HANDLERS
        for path, first, _ in topic_requests.topic_fields(api.request)
        if first <= api.max_version
    }
    used = {
        (use.api, path)
        for use in topic_requests.USES
        for version in use.forms()
        for path in fields_used(use.build(version, TARGET))
    }
    assert named - used == set()


def test_each_api_that_names_a_topic_as_a_resource_has_a_use() -> None:
    assert BY_RESOURCE - {use.api for use in topic_requests.USES} == set()


def start(directory: Path) -> VirtualBroker:
    return VirtualBroker(
        "node.id=1",
        f"log.dirs={directory}",
        "group.share.heartbeat.interval.ms=5000",
        # Instead of 50: each has files, which every start reads.
        "offsets.topic.num.partitions=3",
        "transaction.state.log.num.partitions=3",
        "share.coordinator.state.topic.num.partitions=3",
    )


def stop(broker: VirtualBroker, *, kill: bool) -> None:
    directory = broker.cluster.logs.directory
    assert directory is not None
    if kill:
        directory.flusher.finish()
        directory.unlock()
    else:
        broker.cluster.close()


def acknowledge(broker: VirtualBroker) -> None:
    """Create what a request for another topic must not damage."""
    client = broker.client()
    configs = [CreatableTopicConfig(name="retention.ms", value="-1")]
    topic = CreatableTopic(name=KEPT, num_partitions=2, replication_factor=1, configs=configs)
    source = CreatableTopic(name=topic_requests.SOURCE, num_partitions=1, replication_factor=1)
    client.call(CreateTopicsRequest(topics=[topic, source], timeout_ms=1000), 7)
    client.call(produce(9, topic=KEPT, partition=1), 9)
    entity = [EntityData(entity_type="client-id", entity_name="a")]
    quota = EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=7.0)])
    client.call(AlterClientQuotasRequest(entries=[quota]), 1)
    client.call(commit_request(1, topic=KEPT, partition=1), 8)


def write_to_all(broker: VirtualBroker) -> None:
    """Create the missing topics, and produce a record to each."""
    client = broker.client()
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ORDINARY.values()]
    client.call(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
    for name in ORDINARY.values():
        client.call(produce(9, topic=name), 9)


def acknowledged(broker: VirtualBroker) -> object:
    topic = broker.cluster.topics[KEPT]
    return (
        topic.topic_id,
        topic.config.own,
        values(fetched_bytes(broker.client().call(fetch(topic=KEPT, partition=1), 11))),
        broker.cluster.client_quotas.matching({}, (), strict=False),
        fetched(broker.client().call(fetch_request(1, topic=KEPT), 9)),
    )


def send(broker: VirtualBroker, use: topic_requests.Use, names: list[str], run: int) -> None:
    for version in use.forms():
        for number, name in enumerate(names):
            client = broker.client()
            topic = broker.cluster.topics.get(name)
            target = topic_requests.Target(
                name, topic_requests.UNKNOWN_ID if topic is None else topic.topic_id, f"{run}-{version}-{number}"
            )
            if use.in_transaction:
                request = InitProducerIdRequest(transactional_id=target.key, transaction_timeout_ms=60_000)
                made = client.call(request, 4)
                target = target._replace(producer_id=made.producer_id, producer_epoch=made.producer_epoch)
                if use.api == "TxnOffsetCommit":
                    client.call(topic_requests.add_offsets_to_txn(target), 3)
            client.send(use.build(version, target), version)
        broker.advance(100)


@pytest.mark.parametrize("use", [pytest.param(use, id=use.label(use.forms()[-1])) for use in topic_requests.USES])
def test_data_directory_survives_a_request_for_any_name(use: topic_requests.Use, tmp_path: Path) -> None:
    names = [METADATA, *UNCREATABLE.values(), *ORDINARY.values()]
    if not use.destroys:  # which would delete committed offsets
        names += INTERNAL
    broker = start(tmp_path)
    acknowledge(broker)
    before = acknowledged(broker)
    for run, (exist, kill) in enumerate(((False, True), (True, True), (True, False))):
        if exist:
            write_to_all(broker)
        send(broker, use, names, run)
        topics = {name: topic.topic_id for name, topic in broker.cluster.topics.items()}
        ends = {log.name: log.log_end_offset for log in broker.cluster.logs}
        stop(broker, kill=kill)
        broker = start(tmp_path)
        assert {name: topic.topic_id for name, topic in broker.cluster.topics.items()} == topics
        assert {log.name: log.log_end_offset for log in broker.cluster.logs} == ends
        assert acknowledged(broker) == before
    assert METADATA not in broker.cluster.topics
    stop(broker, kill=False)
