"""The models of groups and transactions, with coordinators that move between brokers and reload their logs.

Clients must see no difference, except that a pending JoinGroup or SyncGroup is answered with NOT_COORDINATOR.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog
from sluice.broker.coordinator.common.loader import CompactedState
from sluice.broker.log.cleaner.cleaner import LogCleaning
from sluice.broker.log.cleaner.selection import to_clean
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, Partition
from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest
from sluice.protocol.apis.add_partitions_to_txn import AddPartitionsToTxnRequest
from sluice.protocol.apis.end_txn import EndTxnRequest
from sluice.protocol.apis.fetch import FetchRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.offset_commit import OffsetCommitRequest
from sluice.protocol.apis.offset_fetch import OffsetFetchRequest
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.apis.txn_offset_commit import TxnOffsetCommitRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.property import test_classic_group
from tests.property.test_classic_group import ClassicGroupMachine
from tests.property.test_consumer_group import ConsumerGroupMachine
from tests.property.test_transactions_model import IDS, PARTITIONS, Transactions
from tests.support.coordinators import move_leader, pictured, reload_groups
from tests.support.groups import commit_code, commit_request, fetch_request, fetched
from tests.support.transactions import LEGACY, NEW, Producer
from tests.support.virtual_broker import Client, VirtualBroker

NODES = st.sampled_from([1, 2, 3])
GROUPS = ("a", "b", "c")
MODES = (("x", LEGACY), ("y", NEW))


class RoutingClient:
    """Sends each request to the leader of its partition or to its coordinator."""

    def __init__(self, broker: VirtualBroker) -> None:
        self._broker = broker
        self._clients: dict[int, Client] = {}

    def call(self, request: Message, version: int) -> Any:
        node_id = self._partition(request).leader
        client = self._clients.get(node_id)
        if client is None:
            client = self._clients[node_id] = self._broker.client(node_id=node_id)
        return client.call(request, version)

    def _partition(self, request: Message) -> Partition:
        if isinstance(request, ProduceRequest):
            return self._broker.partition(index=request.topic_data[0].partition_data[0].index)
        if isinstance(request, FetchRequest):
            return self._broker.partition(index=request.topics[0].partitions[0].partition)
        if isinstance(request, TxnOffsetCommitRequest):
            return coordinated(self._broker, GROUP_METADATA_TOPIC, request.group_id)
        if isinstance(request, OffsetCommitRequest | OffsetFetchRequest):
            return coordinated(self._broker, GROUP_METADATA_TOPIC, request.group_id)
        if isinstance(request, AddPartitionsToTxnRequest):
            return coordinated(self._broker, TRANSACTION_STATE_TOPIC, request.v3_and_below_transactional_id)
        assert isinstance(request, InitProducerIdRequest | AddOffsetsToTxnRequest | EndTxnRequest)
        return coordinated(self._broker, TRANSACTION_STATE_TOPIC, request.transactional_id or "")


def coordinated(broker: VirtualBroker, topic: str, key: str) -> Partition:
    return CoordinatorLog(broker.broker, topic).partition_of(key)


def three() -> VirtualBroker:
    # Among 50 partitions, one broker coordinates all ids of the models, so that producer ids are consecutive.
    return VirtualBroker(
        "sluice.brokers=3",
        "connections.max.idle.ms=-1",
        "offsets.topic.num.partitions=50",
        "transaction.state.log.num.partitions=50",
    )


def move_or_reload(broker: VirtualBroker, partition: Partition, node_id: int) -> None:
    """Move the leader; if it is the current one, unload and reload the partition as a restart does."""
    move_leader(broker, partition, node_id)


class TransactionsThatMove(Transactions):
    """Markers, verification and producer ids across brokers, which the model ignores."""

    def broker_and_client(self) -> tuple[VirtualBroker, RoutingClient]:
        broker = three()
        return broker, RoutingClient(broker)

    @rule(name=st.sampled_from(IDS), node_id=NODES)
    def coordinator_moves(self, name: str, node_id: int) -> None:
        move_or_reload(self.broker, coordinated(self.broker, TRANSACTION_STATE_TOPIC, name), node_id)

    @rule(index=st.sampled_from(PARTITIONS), node_id=NODES)
    def partition_moves(self, index: int, node_id: int) -> None:
        move_leader(self.broker, self.broker.partition(index=index), node_id)


class ClassicGroupThatMoves(ClassicGroupMachine):
    """A generation without assignments is not written, so it may be created again with another leader."""

    @rule()
    def coordinator_forgets(self) -> None:
        self.take_responses()
        reload_groups(self.broker)
        self.take_responses()
        written = 0 if self.group is None else self.group.generation_id
        for known in (self.leaders, self.protocols):
            for generation in [generation for generation in known if generation > written]:
                del known[generation]
        self.last_generation = min(self.last_generation, written)


class ConsumerGroupThatMoves(ConsumerGroupMachine):
    """A consumer group's state is written completely."""

    @rule()
    def coordinator_forgets(self) -> None:
        before = pictured(self.broker)
        reload_groups(self.broker)
        assert pictured(self.broker) == before


def compact(log: PartitionLog, now_ms: int) -> None:
    """Clean all cleanable segments; the latest values do not change."""
    whole = CompactedState(log)
    found = to_clean(log, now_ms)
    cleaning = LogCleaning(log, found.first_dirty_offset, found.first_uncleanable_offset, now_ms, 1000)
    for _ in cleaning.steps():
        pass
    log.first_dirty_offset = max(log.first_dirty_offset, cleaning.end_offset)
    compacted = CompactedState(log)
    assert (compacted.values, compacted.pending) == (whole.values, whole.pending)


class Offsets(RuleBasedStateMachine):
    """Offsets committed directly and in transactions, with coordinators on any broker."""

    def __init__(self) -> None:
        super().__init__()
        self.broker = three()
        self.broker.topic()
        self.logs: list[PartitionLog] = []
        for name in (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC):
            self.logs += [partition.log for partition in self.broker.cluster.internal_topic(name).partitions]
        for log in self.logs:  # the next millisecond starts a segment, and earlier ones can be cleaned
            log.update_config(replace(log.config, segment_ms=1))
        self.client = RoutingClient(self.broker)
        self.producers = [Producer(self.broker, versions, transactional_id=name) for name, versions in MODES]
        for producer in self.producers:
            producer.client = self.client  # type: ignore[assignment]  # has the methods that it uses
            assert producer.init() == ErrorCode.NONE
        self.committed = dict.fromkeys(GROUPS, (-1, -1))  # time of the write, offset
        self.pending: list[dict[str, tuple[int, int]]] = [{} for _ in self.producers]
        self.clock = 0

    def now(self) -> int:
        self.broker.advance(1)
        self.clock += 1
        return self.clock

    @rule(group=st.sampled_from(GROUPS), offset=st.integers(0, 99))
    def commit(self, group: str, offset: int) -> None:
        response = self.client.call(commit_request(offset, group_id=group), 8)
        assert commit_code(response) == ErrorCode.NONE
        self.committed[group] = self.now(), offset

    @rule(number=st.sampled_from([0, 1]), group=st.sampled_from(GROUPS), offset=st.integers(0, 99))
    def commit_in_transaction(self, number: int, group: str, offset: int) -> None:
        producer = self.producers[number]
        if producer.adds_partitions:
            assert producer.add_offsets(group) == ErrorCode.NONE
        assert producer.commit_offset(group, offset) == ErrorCode.NONE
        self.pending[number][group] = self.now(), offset

    @precondition(lambda self: any(self.pending))
    @rule(number=st.sampled_from([0, 1]), commits=st.booleans())
    def end(self, number: int, commits: bool) -> None:
        pending = self.pending[number]
        if not pending:
            return
        assert self.producers[number].end(commits) == ErrorCode.NONE
        for group, written in pending.items() if commits else ():
            self.committed[group] = max(self.committed[group], written)
        self.pending[number] = {}

    @rule(group=st.sampled_from(GROUPS), node_id=NODES)
    def group_moves(self, group: str, node_id: int) -> None:
        move_or_reload(self.broker, coordinated(self.broker, GROUP_METADATA_TOPIC, group), node_id)

    @rule(number=st.sampled_from([0, 1]), node_id=NODES)
    def transactional_id_moves(self, number: int, node_id: int) -> None:
        move_or_reload(self.broker, coordinated(self.broker, TRANSACTION_STATE_TOPIC, MODES[number][0]), node_id)

    @rule()
    def logs_are_compacted(self) -> None:
        for log in self.logs:
            if log.log_end_offset:
                compact(log, self.broker.clock.wall_ms())

    @rule(node_id=NODES)
    def everything_moves(self, node_id: int) -> None:
        for group in GROUPS:
            self.group_moves(group, node_id)
        for number in range(len(MODES)):
            self.transactional_id_moves(number, node_id)

    def teardown(self) -> None:
        self.logs_are_compacted()
        self.everything_moves(1)
        self.every_group_has_its_offset()

    @invariant()
    def every_group_has_its_offset(self) -> None:
        for group, (_, offset) in self.committed.items():
            response = self.client.call(fetch_request(version=7, group_id=group), 7)
            assert fetched(response)["t", 0] == (offset, ErrorCode.NONE)
            stable = self.client.call(fetch_request(version=7, group_id=group, require_stable=True), 7)
            waits = any(group in pending for pending in self.pending)
            assert fetched(stable)["t", 0][1] == (ErrorCode.UNSTABLE_OFFSET_COMMIT if waits else ErrorCode.NONE)


test_classic_group.JOIN_REFUSALS.add(ErrorCode.NOT_COORDINATOR)
test_classic_group.SYNC_REFUSALS.add(ErrorCode.NOT_COORDINATOR)
TestTransactionsThatMove = TransactionsThatMove.TestCase
TestTransactionsThatMove.settings = settings(max_examples=settings().max_examples // 4, stateful_step_count=30)
TestClassicGroupThatMoves = ClassicGroupThatMoves.TestCase
TestClassicGroupThatMoves.settings = settings(max_examples=settings().max_examples // 4, stateful_step_count=30)
TestConsumerGroupThatMoves = ConsumerGroupThatMoves.TestCase
TestConsumerGroupThatMoves.settings = settings(max_examples=settings().max_examples // 4, stateful_step_count=30)
TestOffsets = Offsets.TestCase
TestOffsets.settings = settings(max_examples=settings().max_examples // 4, stateful_step_count=30)
