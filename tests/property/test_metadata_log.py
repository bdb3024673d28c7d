"""Random changes to a cluster that is sometimes killed or stopped.

After each start, its metadata equals that of a twin in memory with the same changes and no restarts.
"""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sluice.protocol.apis import create_partitions
from sluice.protocol.apis import create_topics as api
from sluice.protocol.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.message import Message
from tests.support.configs import config_changes
from tests.support.virtual_broker import VirtualBroker
from tests.unit.broker.controller.metadata_log.cluster_metadata import durable_state, partition_states, start

TOPICS = ("a", "b", "c", "__consumer_offsets")
# Type and name of a resource, one of its configs, and values to set; None deletes it.
CONFIGS = [
    *((2, topic, "retention.ms", ("1", "2", None)) for topic in TOPICS),
    *((2, topic, "cleanup.policy", ("compact", "delete", None)) for topic in TOPICS),
    (4, "", "message.max.bytes", ("1000", "2000", None)),
    (4, "1", "message.max.bytes", ("3000", None)),
    (32, "group", "consumer.session.timeout.ms", ("45000", "50000", None)),
    (16, "subscription", "interval.ms", ("1000", "2000", None)),
]
ENTITIES: list[dict[str, str | None]] = [
    {"user": "u"},
    {"user": None},
    {"user": "u", "client-id": "c"},
    {"client-id": "c"},
]


class Restarts(RuleBasedStateMachine):
    """A cluster on a directory, and its twin in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._temporary = tempfile.TemporaryDirectory()
        self.directory = Path(self._temporary.name)
        self.cluster = start(self.directory, "sluice.brokers=2")
        self.twin = VirtualBroker("node.id=1", "sluice.brokers=2")
        self.producer_ids: set[int] = set()

    def teardown(self) -> None:
        self._temporary.cleanup()

    def both(self, request: Message, version: int) -> None:
        """Send both the same request and compare the responses, except random values."""
        responses = [broker.client().call(request, version) for broker in (self.cluster, self.twin)]
        codes = [str([getattr(one, "error_code", None) for one in _results(response)]) for response in responses]
        assert codes[0] == codes[1]

    @initialize(topic=st.sampled_from(TOPICS))
    def a_topic(self, topic: str) -> None:
        self.create(topic, 1, None)

    @rule(
        topic=st.sampled_from(TOPICS),
        partitions=st.integers(1, 3),
        policy=st.sampled_from([None, "compact", "delete,compact"]),
    )
    def create(self, topic: str, partitions: int, policy: str | None) -> None:
        configs = [] if policy is None else [api.CreatableTopicConfig(name="cleanup.policy", value=policy)]
        # The assignment is random by default, so it is explicit.
        assignments = [
            api.CreatableReplicaAssignment(partition_index=index, broker_ids=[1 + index % 2, 2 - index % 2])
            for index in range(partitions)
        ]
        wanted = api.CreatableTopic(
            name=topic, num_partitions=-1, replication_factor=-1, assignments=assignments, configs=configs
        )
        self.both(api.CreateTopicsRequest(topics=[wanted]), 7)

    @rule(topic=st.sampled_from(TOPICS), count=st.integers(1, 5))
    def grow(self, topic: str, count: int) -> None:
        now = len(self.twin.cluster.topics[topic].partitions) if topic in self.twin.cluster.topics else 0
        assignments = [create_partitions.CreatePartitionsAssignment(broker_ids=[2, 1])] * max(count - now, 0)
        wanted = create_partitions.CreatePartitionsTopic(name=topic, count=count, assignments=assignments)
        self.both(create_partitions.CreatePartitionsRequest(topics=[wanted], timeout_ms=1000), 3)

    @rule(topic=st.sampled_from(TOPICS))
    def delete(self, topic: str) -> None:
        self.both(DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000), 5)

    @rule(config=st.sampled_from(CONFIGS), data=st.data())
    def configure(self, config: tuple[int, str, str, tuple[str | None, ...]], data: st.DataObject) -> None:
        kind, name, key, values = config
        value = data.draw(st.sampled_from(values))
        self.both(config_changes(kind, name, {key: value}), 1)

    @rule(
        entity=st.sampled_from(ENTITIES),
        key=st.sampled_from(["producer_byte_rate", "request_percentage"]),
        value=st.sampled_from([1.0, 2.0, None]),
    )
    def alter_quota(self, entity: dict[str, str | None], key: str, value: float | None) -> None:
        parts = [EntityData(entity_type=type_, entity_name=name) for type_, name in entity.items()]
        change = OpData(key=key, value=value or 0.0, remove=value is None)
        self.both(AlterClientQuotasRequest(entries=[EntryData(entity=parts, ops=[change])]), 1)

    @rule()
    def allocate_a_producer_id(self) -> None:
        taken = self.cluster.client().call(InitProducerIdRequest(transactional_id=None), 4).producer_id
        assert taken not in self.producer_ids
        self.producer_ids.add(taken)

    @rule()
    def kill(self) -> None:
        self._start_again()

    @rule()
    def stop(self) -> None:
        assert self.cluster.cluster.metadata_log is not None
        self.cluster.cluster.metadata_log.close()
        self._start_again()

    @rule()
    def compact(self) -> None:
        assert self.cluster.cluster.metadata_log is not None
        self.cluster.cluster.metadata_log._log.compact()

    @rule(data=st.data())
    def kill_while_a_topic_is_created(self, data: st.DataObject) -> None:
        """The last batch is torn, so the topic was never created."""
        (segment,) = (self.directory / "__cluster_metadata-0").glob("*.log")
        size = segment.stat().st_size
        wanted = api.CreatableTopic(name="torn", num_partitions=2, replication_factor=2)
        (created,) = self.cluster.client().call(api.CreateTopicsRequest(topics=[wanted]), 7).topics
        assert created.error_code == 0
        torn = data.draw(st.integers(size, segment.stat().st_size - 1))
        with segment.open("r+b") as file:
            file.truncate(torn)
        del self.cluster.cluster.topics["torn"]
        self._start_again()

    def _start_again(self) -> None:
        before = durable_state(self.cluster)
        epochs = {topic: partition_states(self.cluster, topic) for topic in self.cluster.cluster.topics}
        self.cluster = start(self.directory, "sluice.brokers=2")
        assert durable_state(self.cluster) == before
        for topic, states in epochs.items():
            again = partition_states(self.cluster, topic)
            assert [state.leader_epoch for state in again] == [state.leader_epoch + 1 for state in states]

    @invariant()
    def metadata_equals_that_of_the_twin(self) -> None:
        assert _without_chance(durable_state(self.cluster)) == _without_chance(durable_state(self.twin))


def _results(response: object) -> list[object]:
    lists = [getattr(response, name, None) for name in ("topics", "results", "responses", "entries")]
    return next(results for results in lists if results is not None)


def _without_chance(state: dict[str, Any]) -> dict[str, object]:
    """Remove topic ids, and producer ids that only one of the two allocated."""
    topics = {name: configs for name, (_, configs) in state["topics"].items()}
    return state | {"topics": topics, "producer ids": None}


Restarts.TestCase.settings = settings(
    max_examples=settings().max_examples // 4,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
test_restarts_change_nothing = Restarts.TestCase
