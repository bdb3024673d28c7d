"""One request for each use of each API that names a topic, by name and by id, in its old and new forms.

`USES` is checked against the schema (tests/unit/broker/test_topic_names.py): a new API, or a new field with a topic,
fails there until it has a use.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from sluice.broker.exchange.advertised_versions import advertised_by
from sluice.protocol.apis import API_KEYS
from sluice.protocol.message import Message, fields_of
from sluice.protocol.types import ZERO_UUID
from sluice.protocol.uuids import printed_uuid
from tests.support.messages import request
from tests.support.records import records_for

RELEASE = "kafka-4.4"
ENTITIES = ("topicName", "topicId")
TIMEOUT_MS = 30_000
TOPIC = 2  # as resource type of configs and ACLs
_ANY, _LITERAL, _READ, _ALLOW = 1, 3, 3, 3
# In place of ids: a Java client's UUIDs, as Kafka parses some of them.
MEMBER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


class Target(NamedTuple):
    """The topic of a request, and what else it needs.

    `key` is unique: groups and transactional ids contain it.
    """

    name: str
    topic_id: bytes
    key: str
    log_dir: str = "/nowhere"
    producer_id: int = 0
    producer_epoch: int = 0


Build = Callable[[int, Target], Message]


class Use(NamedTuple):
    """One use of an API.

    Args:
        api: The name of the API.
        title: What it does, if the API has several uses.
        build: Returns the request, for a version and a target.
        creates: Whether it creates a missing topic.
        destroys: Whether it deletes the topic.
        in_transaction: Whether it needs a producer id of the target's transactional id.
        loads: Whether a first request starts to load state, so that its response depends on the time.
        is_answered: False for Produce with acks=0.
        versions: The versions with a different form; by default all in which fields with topics change.
    """

    api: str
    title: str
    build: Build
    creates: bool = False
    destroys: bool = False
    in_transaction: bool = False
    loads: bool = False
    is_answered: bool = True
    versions: tuple[int, ...] = ()

    def forms(self) -> tuple[int, ...]:
        """Return the oldest and newest versions of each form of the request."""
        return self.versions or _forms(self.api)

    def label(self, version: int) -> str:
        return f"{self.api} v{version}" + (f" {self.title}" if self.title else "")


USES: list[Use] = []


def _use(title: str = "", **options: Any) -> Callable[[Callable[..., Message]], Callable[..., Message]]:
    """Register a function `<api>` or `<api>__<words>` as a use. Options that are no fields of Use are its arguments."""
    arguments = {name: options.pop(name) for name in [*options] if name not in Use._fields}

    def register(build: Callable[..., Message]) -> Callable[..., Message]:
        module = build.__name__.partition("__")[0]
        (api,) = (api.name for api in API_KEYS.values() if api.module == module)
        USES.append(Use(api, title, partial(build, **arguments), **options))
        return build

    return register


def topic_fields(message: type[Message], path: str = "") -> Iterator[tuple[str, int, int]]:
    """Iterate over the fields with a topic's name or id: path, first and last version."""
    for field in fields_of(message):
        if field.struct is not None:
            for name, first, last in topic_fields(field.struct, f"{path}{field.name}."):
                if first <= field.versions.last and last >= field.versions.first:
                    yield name, max(first, field.versions.first), min(last, field.versions.last)
        elif field.meaning.entity in ENTITIES:
            yield path + field.name, field.versions.first, field.versions.last


@cache
def _forms(api_name: str) -> tuple[int, ...]:
    (api,) = (api for api in API_KEYS.values() if api.name == api_name)
    first, last = advertised_by(RELEASE).get(api.key, (api.min_version, api.max_version))
    edges = {first, last}
    for _, begin, end in topic_fields(api.request):
        edges |= {begin - 1, begin, end, end + 1}
    return tuple(sorted(edge for edge in edges if first <= edge <= last))


# Topics


@_use("twice in one request", versions=(7,), copies=2)
@_use("that validates only", validate_only=True)
@_use(
    "of an assignment", creates=True, versions=(7,), count=-1, assignments=[{"partition_index": 0, "broker_ids": [1]}]
)
@_use("of partitions and replicas", creates=True)
def create_topics(
    _version: int, to: Target, copies: int = 1, count: int = 1, assignments: Sequence[Any] = (), **fields: bool
) -> Message:
    topic = {"name": to.name, "num_partitions": count, "replication_factor": count, "assignments": [*assignments]}
    return request("CreateTopics", topics=[topic] * copies, timeout_ms=TIMEOUT_MS, **fields)


@_use("with automatic creation", creates=True, versions=(0, 1, 3, 4, 8, 9, 11, 12, 13))
def metadata__creating(_version: int, to: Target) -> Message:
    return request("Metadata", topics=[{"name": to.name}])


@_use("by name", versions=(4, 9, 13))
def metadata__by_name(_version: int, to: Target) -> Message:
    return request(
        "Metadata",
        topics=[{"name": to.name}],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )


@_use("by id", versions=(12, 13))
def metadata__by_id(_version: int, to: Target) -> Message:
    topic = {"name": None, "topic_id": to.topic_id}
    return request("Metadata", topics=[topic], allow_auto_topic_creation=True)


@_use()
def describe_topic_partitions(_version: int, to: Target) -> Message:
    return request("DescribeTopicPartitions", topics=[{"name": to.name}])


@_use("to the same number", count=1)
@_use("by validation", count=3, validate_only=True)
def create_partitions(_version: int, to: Target, count: int, **fields: bool) -> Message:
    topic = {"name": to.name, "count": count, "assignments": None}
    return request("CreatePartitions", topics=[topic], timeout_ms=TIMEOUT_MS, **fields)


@_use("by name", destroys=True)
def delete_topics__by_name(_version: int, to: Target) -> Message:
    state = {"name": to.name}
    return request("DeleteTopics", topics=[state], topic_names=[to.name], timeout_ms=TIMEOUT_MS)


@_use("by id", destroys=True, versions=(6,))
def delete_topics__by_id(_version: int, to: Target) -> Message:
    return request("DeleteTopics", topics=[{"topic_id": to.topic_id}], timeout_ms=TIMEOUT_MS)


@_use("by name and id", versions=(6,))
def delete_topics__by_both(_version: int, to: Target) -> Message:
    state = {"name": to.name, "topic_id": to.topic_id}
    return request("DeleteTopics", topics=[state], timeout_ms=TIMEOUT_MS)


# Records


@_use("acks=all", versions=(3, 12, 13), acks=-1)
@_use("acks=1", versions=(3, 12, 13), acks=1)
@_use("acks=0", versions=(3, 12, 13), acks=0, is_answered=False)
def produce(version: int, to: Target, acks: int) -> Message:
    data = {"index": 0, "records": records_for(max(version, 3))}
    topic = {"name": to.name, "topic_id": to.topic_id, "partition_data": [data]}
    return request("Produce", acks=acks, timeout_ms=TIMEOUT_MS, topic_data=[topic])


@_use()
def fetch(_version: int, to: Target) -> Message:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    topic = {"topic": to.name, "topic_id": to.topic_id, "partitions": [partition]}
    return request("Fetch", max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[topic])


@_use("of the end")
def list_offsets(_version: int, to: Target) -> Message:
    topic = {"name": to.name, "partitions": [{"partition_index": 0, "timestamp": -1}]}
    return request("ListOffsets", replica_id=-1, topics=[topic], timeout_ms=TIMEOUT_MS)


@_use()
def delete_records(_version: int, to: Target) -> Message:
    topic = {"name": to.name, "partitions": [{"partition_index": 0, "offset": 0}]}
    return request("DeleteRecords", topics=[topic], timeout_ms=TIMEOUT_MS)


@_use()
def offset_for_leader_epoch(_version: int, to: Target) -> Message:
    partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    return request("OffsetForLeaderEpoch", replica_id=-1, topics=[{"topic": to.name, "partitions": [partition]}])


@_use()
def describe_producers(_version: int, to: Target) -> Message:
    return request("DescribeProducers", topics=[{"name": to.name, "partition_indexes": [0]}])


# Configs and ACLs


@_use()
def describe_configs(_version: int, to: Target) -> Message:
    resource = {"resource_type": TOPIC, "resource_name": to.name, "configuration_keys": ["file.delete.delay.ms"]}
    return request("DescribeConfigs", resources=[resource])


@_use()
def alter_configs(_version: int, to: Target) -> Message:
    config = {"name": "file.delete.delay.ms", "value": "60001"}
    return request(
        "AlterConfigs",
        resources=[{"resource_type": TOPIC, "resource_name": to.name, "configs": [config]}],
        validate_only=to.name.startswith("__"),  # it would reset the settings of the coordinators' topics
    )


@_use()
def incremental_alter_configs(_version: int, to: Target) -> Message:
    config = {"name": "file.delete.delay.ms", "config_operation": 0, "value": "60002"}
    resource = {"resource_type": TOPIC, "resource_name": to.name, "configs": [config]}
    return request("IncrementalAlterConfigs", resources=[resource])


@_use()
def create_acls(_version: int, to: Target) -> Message:
    acl = {
        "resource_type": TOPIC,
        "resource_name": to.name,
        "principal": "User:reader",
        "host": "*",
        "operation": _READ,
        "permission_type": _ALLOW,
    }
    return request("CreateAcls", creations=[acl])


@_use()
def describe_acls(_version: int, to: Target) -> Message:
    return request(
        "DescribeAcls",
        resource_type_filter=TOPIC,
        resource_name_filter=to.name,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )


@_use()
def delete_acls(_version: int, to: Target) -> Message:
    acls = {
        "resource_type_filter": TOPIC,
        "resource_name_filter": to.name,
        "principal_filter": None,
        "host_filter": None,
        "operation": _ANY,
        "permission_type": _ANY,
    }
    return request("DeleteAcls", filters=[acls])


# Offsets of groups


@_use()
def offset_commit(_version: int, to: Target) -> Message:
    partition = {"partition_index": 0, "committed_offset": 3}
    topic = {"name": to.name, "topic_id": to.topic_id, "partitions": [partition]}
    return request("OffsetCommit", group_id=f"offsets-{to.key}", topics=[topic])


@_use()
def offset_fetch(_version: int, to: Target) -> Message:
    group_id = f"offsets-{to.key}"
    topics = {"name": to.name, "topic_id": to.topic_id, "partition_indexes": [0]}
    return request(
        "OffsetFetch",
        group_id=group_id,
        topics=[{"name": to.name, "partition_indexes": [0]}],
        groups=[{"group_id": group_id, "topics": [topics]}],
    )


@_use()
def offset_delete(_version: int, to: Target) -> Message:
    topic = {"name": to.name, "partitions": [{"partition_index": 0}]}
    return request("OffsetDelete", group_id=f"offsets-{to.key}", topics=[topic])


# Groups


@_use("with a subscription")
def consumer_group_heartbeat(version: int, to: Target) -> Message:
    return request(
        "ConsumerGroupHeartbeat",
        group_id=f"consumer-{version}-{to.key}",
        member_id=MEMBER_ID if version else "",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[to.name],
        topic_partitions=[],
    )


@_use("with owned partitions", versions=(1,))
def consumer_group_heartbeat__owner(version: int, to: Target) -> Message:
    return request(
        "ConsumerGroupHeartbeat",
        group_id=f"consumer-{version}-{to.key}",
        member_id=MEMBER_ID,
        member_epoch=1,
        topic_partitions=[{"topic_id": to.topic_id, "partitions": [0]}],
    )


@_use()
def share_group_heartbeat(_version: int, to: Target) -> Message:
    return request(
        "ShareGroupHeartbeat",
        group_id=f"share-{to.key}",
        member_id=MEMBER_ID,
        member_epoch=0,
        subscribed_topic_names=[to.name],
    )


def _topology(version: int, to: Target, use: str, *subtopologies: dict[str, Any]) -> Message:
    return request(
        "StreamsGroupHeartbeat",
        group_id=f"streams-{use}-{version}-{to.key}",
        member_id=MEMBER_ID,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        process_id="process",
        topology={"epoch": 0, "subtopologies": list(subtopologies)},
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        client_tags=[],
    )


# A topic of this name has to exist: the topology reads it.
SOURCE = "names-source"


@_use("of a source")
def streams_group_heartbeat__source(version: int, to: Target) -> Message:
    return _topology(version, to, "source", {"subtopology_id": "0", "source_topics": [to.name]})


@_use("of a changelog", creates=True)
def streams_group_heartbeat__changelog(version: int, to: Target) -> Message:
    changelog = {"name": to.name, "replication_factor": 1}
    one = {"subtopology_id": "0", "source_topics": [SOURCE], "state_changelog_topics": [changelog]}
    return _topology(version, to, "changelog", one)


@_use("of a repartition topic", creates=True)
def streams_group_heartbeat__repartition(version: int, to: Target) -> Message:
    sink = {"subtopology_id": "0", "source_topics": [SOURCE], "repartition_sink_topics": [to.name]}
    topic = {"name": to.name, "partitions": 1, "replication_factor": 1}
    source = {"subtopology_id": "1", "repartition_source_topics": [topic]}
    return _topology(version, to, "repartition", sink, source)


@_use()
def streams_group_topology_description_update(_version: int, to: Target) -> Message:
    node = {"name": "node", "source_topics": [to.name], "sink_topic": to.name}
    return request(
        "StreamsGroupTopologyDescriptionUpdate",
        group_id=f"description-{to.key}",
        member_id=MEMBER_ID,
        topology_epoch=0,
        topology_description={
            "subtopologies": [{"subtopology_id": "0", "nodes": [node]}],
            "global_stores": [{"source": node, "processor": node}],
        },
    )


# Transactions


@_use("of a client", in_transaction=True, versions=(0, 3))
def add_partitions_to_txn(_version: int, to: Target) -> Message:
    return request(
        "AddPartitionsToTxn",
        v3_and_below_transactional_id=to.key,
        v3_and_below_producer_id=to.producer_id,
        v3_and_below_producer_epoch=to.producer_epoch,
        v3_and_below_topics=[{"name": to.name, "partitions": [0]}],
    )


@_use("of a broker", in_transaction=True, versions=(4, 5))
def add_partitions_to_txn__of_a_broker(_version: int, to: Target) -> Message:
    transaction = {
        "transactional_id": to.key,
        "producer_id": to.producer_id,
        "producer_epoch": to.producer_epoch,
        "topics": [{"name": to.name, "partitions": [0]}],
    }
    return request("AddPartitionsToTxn", transactions=[transaction])


@_use(in_transaction=True)
def txn_offset_commit(_version: int, to: Target) -> Message:
    partition = {"partition_index": 0, "committed_offset": 1}
    return request(
        "TxnOffsetCommit",
        transactional_id=to.key,
        group_id=f"transaction-{to.key}",
        producer_id=to.producer_id,
        producer_epoch=to.producer_epoch,
        topics=[{"name": to.name, "topic_id": to.topic_id, "partitions": [partition]}],
    )


@_use()
def write_txn_markers(_version: int, to: Target) -> Message:
    topic = {"name": to.name, "partition_indexes": [0]}
    marker = {"producer_id": 1_000_000, "producer_epoch": 0, "transaction_result": False, "topics": [topic]}
    return request("WriteTxnMarkers", markers=[marker])


# Replicas


@_use("to its directory")
@_use("to no directory of the broker", log_dir="/nowhere")
def alter_replica_log_dirs(_version: int, to: Target, log_dir: str = "") -> Message:
    topic = {"name": to.name, "partitions": [0]}
    return request("AlterReplicaLogDirs", dirs=[{"path": log_dir or to.log_dir, "topics": [topic]}])


@_use()
def describe_log_dirs(_version: int, to: Target) -> Message:
    return request("DescribeLogDirs", topics=[{"topic": to.name, "partitions": [0]}])


@_use("that cancels", replicas=None)
@_use(replicas=[1])
def alter_partition_reassignments(_version: int, to: Target, replicas: list[int] | None) -> Message:
    topic = {"name": to.name, "partitions": [{"partition_index": 0, "replicas": replicas}]}
    return request("AlterPartitionReassignments", topics=[topic], timeout_ms=TIMEOUT_MS)


@_use()
def list_partition_reassignments(_version: int, to: Target) -> Message:
    topic = {"name": to.name, "partition_indexes": [0]}
    return request("ListPartitionReassignments", topics=[topic], timeout_ms=TIMEOUT_MS)


@_use("of an unclean election", versions=(2,), kind=1)
@_use(kind=0)
def elect_leaders(_version: int, to: Target, kind: int) -> Message:
    partitions = [{"topic": to.name, "partitions": [0]}]
    return request("ElectLeaders", election_type=kind, topic_partitions=partitions, timeout_ms=TIMEOUT_MS)


@_use()
def describe_quorum(_version: int, to: Target) -> Message:
    topic = {"topic_name": to.name, "partitions": [{"partition_index": 0}]}
    return request("DescribeQuorum", topics=[topic])


# Share groups


@_use(loads=True)
def share_fetch(_version: int, to: Target) -> Message:
    return request(
        "ShareFetch",
        group_id=f"share-{to.key}",
        member_id=MEMBER_ID,
        share_session_epoch=0,
        max_wait_ms=0,
        min_bytes=0,
        max_records=10,
        batch_size=10,
        topics=[{"topic_id": to.topic_id, "partitions": [{"partition_index": 0}]}],
    )


@_use("that forgets", versions=(2,))
def share_fetch__forget(_version: int, to: Target) -> Message:
    return request(
        "ShareFetch",
        group_id=f"share-{to.key}",
        member_id=MEMBER_ID,
        share_session_epoch=1,
        max_wait_ms=0,
        min_bytes=0,
        forgotten_topics_data=[{"topic_id": to.topic_id, "partitions": [0]}],
    )


@_use()
def share_acknowledge(_version: int, to: Target) -> Message:
    partition = {"partition_index": 0, "acknowledgement_batches": []}
    return request(
        "ShareAcknowledge",
        group_id=f"share-{to.key}",
        member_id=MEMBER_ID,
        share_session_epoch=2,
        topics=[{"topic_id": to.topic_id, "partitions": [partition]}],
    )


@_use()
def describe_share_group_offsets(_version: int, to: Target) -> Message:
    topic = {"topic_name": to.name, "partitions": [0]}
    group = {"group_id": f"share-offsets-{to.key}", "topics": [topic]}
    return request("DescribeShareGroupOffsets", groups=[group])


@_use()
def alter_share_group_offsets(_version: int, to: Target) -> Message:
    partition = {"partition_index": 0, "start_offset": 0}
    topic = {"topic_name": to.name, "partitions": [partition]}
    return request("AlterShareGroupOffsets", group_id=f"share-offsets-{to.key}", topics=[topic])


@_use()
def delete_share_group_offsets(_version: int, to: Target) -> Message:
    topic = {"topic_name": to.name}
    return request("DeleteShareGroupOffsets", group_id=f"share-offsets-{to.key}", topics=[topic])


@_use("of a share partition", versions=(6,))
def find_coordinator(_version: int, to: Target) -> Message:
    return request("FindCoordinator", key_type=2, coordinator_keys=[f"fetching:{printed_uuid(to.topic_id)}:0"])


# For the uses in a transaction.


def add_offsets_to_txn(to: Target) -> Message:
    """Return the request that precedes TxnOffsetCommit of old clients."""
    return request(
        "AddOffsetsToTxn",
        transactional_id=to.key,
        producer_id=to.producer_id,
        producer_epoch=to.producer_epoch,
        group_id=f"transaction-{to.key}",
    )


UNKNOWN_ID = ZERO_UUID[:-1] + b"\x63"
