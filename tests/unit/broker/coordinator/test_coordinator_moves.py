"""Coordinators in a cluster: the leader of a key's partition coordinates it, also after a leader change."""

from collections.abc import Callable

import pytest

from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog
from sluice.broker.coordinator.group.classic.group import STABLE, ClassicGroup
from sluice.broker.coordinator.transaction.markers import Marker, write_marker
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, NO_LEADER, TRANSACTION_STATE_TOPIC, Partition
from sluice.protocol.apis.consumer_group_describe import ConsumerGroupDescribeRequest
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.apis.describe_groups import DescribeGroupsRequest
from sluice.protocol.apis.describe_transactions import DescribeTransactionsRequest
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.apis.list_groups import ListGroupsRequest
from sluice.protocol.apis.list_transactions import ListTransactionsRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support import transactions
from tests.support.coordinators import ONE_PARTITION, move_leader
from tests.support.groups import (
    Member,
    commit_code,
    commit_request,
    delete_offsets_request,
    fetch_request,
    fetched,
    settle_round,
    stable_group,
)
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic
from tests.support.wire import error_codes

NODES = (1, 2, 3)
ELECTION_DELAY_MS = 9_000


def three_brokers(*overrides: str) -> VirtualBroker:
    return VirtualBroker("sluice.brokers=3", *overrides)


@pytest.fixture
def broker() -> VirtualBroker:
    return three_brokers()


def group_partition(broker: VirtualBroker, key: str = "group") -> Partition:
    return CoordinatorLog(broker.broker, GROUP_METADATA_TOPIC).partition_of(key)


def transaction_partition(broker: VirtualBroker, key: str = "tx") -> Partition:
    return CoordinatorLog(broker.broker, TRANSACTION_STATE_TOPIC).partition_of(key)


def other_node(partition: Partition) -> int:
    return next(node_id for node_id in NODES if node_id != partition.leader)


def client_of(broker: VirtualBroker, partition: Partition) -> Client:
    return broker.client(node_id=partition.leader)


def initialized_producer(
    broker: VirtualBroker, versions: dict[str, int] = transactions.LEGACY, transactional_id: str = "tx"
) -> transactions.Producer:
    """Return a producer with its producer id, connected to its coordinator."""
    producer = transactions.Producer(broker, versions, transactional_id=transactional_id)
    producer.client = client_of(broker, transaction_partition(broker, transactional_id))
    assert producer.init() == ErrorCode.NONE
    return producer


# -- FindCoordinator ---------------------------------------------------------------------------------------------------


KEY_TYPES = {"group": (0, group_partition), "transactional id": (1, transaction_partition)}


@pytest.mark.parametrize("version", [1, 6])
@pytest.mark.parametrize("node_id", NODES)
@pytest.mark.parametrize(("key_type", "partition_of"), KEY_TYPES.values(), ids=KEY_TYPES)
def test_every_broker_returns_the_leader_of_a_keys_partition_as_coordinator(
    key_type: int, partition_of: Callable[[VirtualBroker, str], Partition], node_id: int, version: int
) -> None:
    broker = three_brokers()
    client = broker.client(node_id=node_id)
    keys = [f"key-{number}" for number in range(8)]
    for key in keys:
        response = client.call(FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key]), version)
        found = response.coordinators[0] if version >= 4 else response
        leader = partition_of(broker, key).leader
        port = broker.cluster_server.servers[leader].endpoints[0].port
        assert (found.error_code, found.node_id, found.port) == (ErrorCode.NONE, leader, port)
    assert {partition_of(broker, key).leader for key in keys} == set(NODES)


@pytest.mark.parametrize(("version", "message"), [(1, "The coordinator is not available."), (6, "")])
def test_partition_without_leader_returns_coordinator_not_available(version: int, message: str) -> None:
    broker = three_brokers()
    move_leader(broker, group_partition(broker), NO_LEADER)
    response = broker.client().call(FindCoordinatorRequest(key="group", coordinator_keys=["group"]), version)
    found = response.coordinators[0] if version >= 4 else response
    assert (found.error_code, found.node_id, found.error_message) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, message)


# -- errors of other brokers and during loads --------------------------------------------------------------------------

GROUP_REQUESTS: dict[str, tuple[Callable[[], Message], int]] = {
    "JoinGroup": (lambda: Member.join_request(_member()), 9),
    "SyncGroup": (lambda: Member.sync_request(_member()), 5),
    "Heartbeat": (lambda: HeartbeatRequest(group_id="group", member_id="m"), 4),
    "LeaveGroup": (lambda: LeaveGroupRequest(group_id="group", members=[MemberIdentity(member_id="m")]), 5),
    "ConsumerGroupHeartbeat": (
        lambda: ConsumerGroupHeartbeatRequest(
            group_id="group", member_id="m", rebalance_timeout_ms=1, subscribed_topic_names=["t"], topic_partitions=[]
        ),
        1,
    ),
    "OffsetCommit": (commit_request, 9),
    "OffsetFetch v1": (lambda: fetch_request(version=1), 1),
    "OffsetFetch v2": (lambda: fetch_request(version=2), 2),
    "OffsetFetch v8": (lambda: fetch_request(), 8),
    "OffsetDelete": (delete_offsets_request, 0),
    "TxnOffsetCommit v1": (lambda: transactions.offsets_request(0, 0, "group"), 1),
    "TxnOffsetCommit v5": (lambda: transactions.offsets_request(0, 0, "group"), 5),
    "DescribeGroups": (lambda: DescribeGroupsRequest(groups=["group"]), 6),
    "ConsumerGroupDescribe": (lambda: ConsumerGroupDescribeRequest(group_ids=["group"]), 1),
    "DeleteGroups": (lambda: DeleteGroupsRequest(groups_names=["group"]), 2),
}
TRANSACTION_REQUESTS: dict[str, tuple[Callable[[], Message], int]] = {
    "InitProducerId": (transactions.init_request, 5),
    "AddPartitionsToTxn": (lambda: transactions.add_request(3, 0, 0), 3),
    "EndTxn": (lambda: transactions.end_request(0, 0), 5),
    "DescribeTransactions": (lambda: DescribeTransactionsRequest(transactional_ids=["tx"]), 0),
}
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
# As in Kafka, members do not notice a load.
LOADING_ERRORS = {"Heartbeat": set[int](), "TxnOffsetCommit v1": {ErrorCode.COORDINATOR_NOT_AVAILABLE}}


def _member() -> Member:
    member = Member.__new__(Member)
    member.group_id, member.member_id, member.instance_id, member.generation_id = "group", "", None, 1
    return member


REQUESTS = GROUP_REQUESTS | TRANSACTION_REQUESTS
each_request = pytest.mark.parametrize("api", REQUESTS)


@each_request
def test_other_broker_returns_not_coordinator(broker: VirtualBroker, api: str) -> None:
    make_request, version = REQUESTS[api]
    broker.topic()
    partition = group_partition(broker) if api in GROUP_REQUESTS else transaction_partition(broker)
    response = broker.client(node_id=other_node(partition)).call(make_request(), version)
    assert set(error_codes(response)) == {ErrorCode.NOT_COORDINATOR}


@each_request
def test_loading_coordinator_returns_coordinator_load_in_progress(api: str) -> None:
    make_request, version = REQUESTS[api]
    broker = broker_with_topic("sluice.coordinator.load.delay.ms=1000", *ONE_PARTITION)
    client = broker.client()
    broker.broker.cluster.internal_topic(GROUP_METADATA_TOPIC)
    broker.broker.cluster.internal_topic(TRANSACTION_STATE_TOPIC)
    assert broker.broker.transactions.shards.is_loading
    assert set(error_codes(client.call(make_request(), version))) == LOADING_ERRORS.get(api, {LOADING})
    broker.advance(1_000)
    client.send(make_request(), version)
    assert all(LOADING not in error_codes(response.message) for response in client.take_responses())


LISTS = {
    "groups": (ListGroupsRequest(), GROUP_METADATA_TOPIC),
    "transactions": (ListTransactionsRequest(), TRANSACTION_STATE_TOPIC),
    "invalid pattern": (ListTransactionsRequest(transactional_id_pattern="["), TRANSACTION_STATE_TOPIC),
}


@pytest.mark.parametrize(("list_request", "topic"), LISTS.values(), ids=LISTS)
def test_list_requests_return_load_in_progress_until_all_partitions_are_loaded(
    list_request: Message, topic: str
) -> None:
    broker = VirtualBroker("sluice.coordinator.load.delay.ms=1000", *ONE_PARTITION)
    broker.broker.cluster.internal_topic(topic)
    assert broker.broker.groups.shards.is_loading or broker.broker.transactions.shards.is_loading
    client, version = broker.client(), 2 if isinstance(list_request, ListTransactionsRequest) else 5
    assert client.call(list_request, version).error_code == LOADING
    broker.advance(1_000)
    assert client.call(list_request, version).error_code in (ErrorCode.NONE, ErrorCode.INVALID_REGULAR_EXPRESSION)


def test_broker_lists_the_groups_and_transactions_it_coordinates(broker: VirtualBroker) -> None:
    broker.topic()
    names = [f"g-{number}" for number in range(6)]
    for name in names:
        client_of(broker, group_partition(broker, name)).call(commit_request(group_id=name), 9)
        initialized_producer(broker, transactional_id=name)
    for node_id in NODES:
        client = broker.client(node_id=node_id)
        groups = {group.group_id for group in client.call(ListGroupsRequest(), 5).groups}
        assert groups == {name for name in names if group_partition(broker, name).leader == node_id}
        ids = {
            transaction.transactional_id for transaction in client.call(ListTransactionsRequest(), 1).transaction_states
        }
        assert ids == {name for name in names if transaction_partition(broker, name).leader == node_id}


# -- leader changes ----------------------------------------------------------------------------------------------------


def group_on(broker: VirtualBroker, node_id: int) -> ClassicGroup:
    group = broker.cluster_server.brokers[node_id].groups.groups["group"]
    assert isinstance(group, ClassicGroup)
    return group


def members_of(broker: VirtualBroker, *instance_ids: str | None) -> list[Member]:
    """Return a stable group of static and dynamic members, connected to its coordinator."""
    partition = group_partition(broker)
    members = []
    for instance_id in instance_ids:
        member = Member(broker, instance_id=instance_id)
        member.client = client_of(broker, partition)
        members.append(member)
        member.send_join()
    broker.advance(10_000)
    settle_round(members)
    return members


def test_group_survives_a_coordinator_move_without_a_rebalance(broker: VirtualBroker) -> None:
    broker.topic()
    members = members_of(broker, "i", None, "j", None)
    members[0].commit(5)
    partition = group_partition(broker)
    before, after = partition.leader, other_node(partition)
    broker.advance(4_000)
    move_leader(broker, partition, after)
    assert broker.cluster_server.brokers[before].groups.groups == {}
    assert [member.heartbeat() for member in members] == [ErrorCode.NOT_COORDINATOR] * 4
    for member in members:
        member.client = broker.client(node_id=after)
    broker.advance(9_999)  # sessions restart with the load
    assert [member.heartbeat() for member in members] == [ErrorCode.NONE] * 4
    group = group_on(broker, after)
    assert (group.state, group.generation_id, len(group.members)) == (STABLE, 1, 4)
    assert fetched(members[0].client.call(fetch_request(), 9))["t", 0] == (5, ErrorCode.NONE)
    again = Member(broker, instance_id="i")
    again.client = broker.client(node_id=after)
    again.send_join()
    assert again.joined().error_code == ErrorCode.NONE
    assert group.state is STABLE


def elect(broker: VirtualBroker, node_id: int) -> None:
    broker.cluster_server.move_leader(GROUP_METADATA_TOPIC, 0, node_id)


def coordinator(broker: VirtualBroker) -> Client:
    return client_of(broker, broker.cluster.topics[GROUP_METADATA_TOPIC].partitions[0])


def group_led_by(node_id: int) -> VirtualBroker:
    """Return three brokers; this one coordinates a group with the committed offset 1."""
    broker = three_brokers(
        *ONE_PARTITION, "offsets.topic.replication.factor=3", f"sluice.election.delay.ms={ELECTION_DELAY_MS}"
    )
    broker.topic()
    group_partition(broker)
    elect(broker, node_id)
    commit(broker, 1)
    return broker


def commit(broker: VirtualBroker, offset: int) -> None:
    assert commit_code(coordinator(broker).call(commit_request(offset), 9)) == ErrorCode.NONE


def committed_offset(broker: VirtualBroker) -> tuple[int, int]:
    return fetched(coordinator(broker).call(fetch_request(), 9))["t", 0]


def test_broker_that_leads_only_while_it_is_isolated_keeps_no_state() -> None:
    """It does not learn of its election. Otherwise its state would be old when it leads again."""
    broker = group_led_by(2)
    broker.cluster_server.isolate_broker(1)
    elect(broker, 1)
    elect(broker, 3)
    broker.advance(ELECTION_DELAY_MS)  # the controller removes broker 1 from the ISR
    commit(broker, 2)
    broker.cluster_server.rejoin_broker(1)
    elect(broker, 1)
    assert committed_offset(broker) == (2, ErrorCode.NONE)


ELECTIONS = {"elected": (2, [1]), "replaced and elected again": (1, [2, 1])}


@pytest.mark.parametrize(("before", "elections"), ELECTIONS.values(), ids=ELECTIONS)
def test_leader_that_was_elected_while_isolated_coordinates_when_it_rejoins(before: int, elections: list[int]) -> None:
    broker = group_led_by(before)
    broker.cluster_server.isolate_broker(1)
    for node_id in elections:
        elect(broker, node_id)
    broker.cluster_server.rejoin_broker(1)
    assert committed_offset(broker) == (1, ErrorCode.NONE)
    commit(broker, 2)
    assert committed_offset(broker) == (2, ErrorCode.NONE)


def test_coordinator_move_fails_a_pending_join_with_not_coordinator(broker: VirtualBroker) -> None:
    (member,) = members_of(broker, None)
    newcomer = Member(broker)
    newcomer.client = client_of(broker, group_partition(broker))
    newcomer.send_join()
    assert newcomer.client.responses == []
    move_leader(broker, group_partition(broker), other_node(group_partition(broker)))
    assert newcomer.joined().error_code == ErrorCode.NOT_COORDINATOR
    broker.advance(60_000)
    assert newcomer.client.responses == []
    assert member.client.is_open


def test_coordinator_move_removes_timers(broker: VirtualBroker) -> None:
    members_of(broker, None)
    partition = group_partition(broker)
    before = broker.cluster_server.brokers[partition.leader].groups
    move_leader(broker, partition, other_node(partition))
    assert (len(before.heartbeats), len(before.rebalances)) == (0, 0)


def test_commit_response_waits_for_the_replicas() -> None:
    broker = broker_with_topic("sluice.replication.delay.ms=100")
    client = broker.client()
    client.send(commit_request(), 9)
    assert client.responses == []
    client.end()
    reader = broker.client()
    reader.send(fetch_request(), 9)
    broker.advance(99)
    assert (client.responses, reader.responses) == ([], [])  # nor is the offset visible
    broker.advance(1)
    assert commit_code(client.response().message) == ErrorCode.NONE
    assert fetched(reader.response().message)["t", 0] == (7, ErrorCode.NONE)


def test_commit_fails_if_the_leader_changes_before_the_replicas_have_it() -> None:
    broker = three_brokers("sluice.replication.delay.ms=100", *ONE_PARTITION)
    broker.topic()
    partition = group_partition(broker)
    client = client_of(broker, partition)
    client.send(commit_request(), 9)
    partition.log.truncate_to(0)
    move_leader(broker, partition, other_node(partition))
    assert commit_code(client.response().message) == ErrorCode.NOT_COORDINATOR
    client = client_of(broker, partition)
    assert fetched(client.call(fetch_request(), 9))["t", 0] == (-1, ErrorCode.NONE)


def test_commit_that_is_not_replicated_in_time_returns_coordinator_not_available() -> None:
    broker = broker_with_topic("sluice.replication.delay.ms=60000", "offsets.commit.timeout.ms=2000")
    client = broker.client()
    client.send(commit_request(), 9)
    broker.advance(2_000)
    assert commit_code(client.response().message) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    client.send(fetch_request(), 9)
    broker.advance(2_000)
    assert client.response().message.groups[0].error_code == ErrorCode.NOT_COORDINATOR


def test_assignment_is_returned_after_the_replicas_have_it() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=100", "group.initial.rebalance.delay.ms=0")
    member = Member(broker, instance_id="i")
    member.send_join()
    broker.advance(100)
    member.joined()
    member.send_sync({member.member_id: b"mine"})
    broker.advance(99)
    assert member.client.responses == []
    broker.advance(1)
    assert member.client.response().message.assignment == b"mine"


# -- transactions across brokers ---------------------------------------------------------------------------------------


def separate_coordinator(broker: VirtualBroker, partition: Partition) -> None:
    """Let a broker that does not lead the partition coordinate the transactional id."""
    if transaction_partition(broker).leader == partition.leader:
        move_leader(broker, transaction_partition(broker), other_node(partition))


def producer_of(broker: VirtualBroker, versions: dict[str, int], leader: int) -> transactions.Producer:
    """Return a producer connected to its coordinator, whose records went to the leader of "t"."""
    producer = initialized_producer(broker, versions)
    if producer.adds_partitions:
        assert producer.add() == {ErrorCode.NONE}
    coordinator, producer.client = producer.client, broker.client(node_id=leader)
    assert producer.send(b"v") == ErrorCode.NONE
    producer.client = coordinator
    return producer


@pytest.mark.parametrize(
    "versions", [transactions.LEGACY, transactions.NEW], ids=["legacy client", "transaction version 2"]
)
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_transaction_markers_are_written_to_the_partition_leaders(versions: dict[str, int], committed: bool) -> None:
    broker = three_brokers()
    (partition,) = broker.topic().partitions
    separate_coordinator(broker, partition)
    producer = producer_of(broker, versions, partition.leader)
    assert partition.log.last_stable_offset == 0
    assert producer.end(committed) == ErrorCode.NONE
    assert partition.log.last_stable_offset == partition.log.log_end_offset == 2
    assert [header.is_control for header, _ in transactions.stored(broker)] == [False, True]


def test_produce_outside_a_transaction_is_rejected_across_brokers(broker: VirtualBroker) -> None:
    (partition,) = broker.topic().partitions
    separate_coordinator(broker, partition)
    producer = initialized_producer(broker)
    producer.client = broker.client(node_id=partition.leader)
    assert producer.send(b"v") == ErrorCode.TRANSACTION_ABORTABLE


def test_produce_fails_while_the_transactional_id_has_no_coordinator(broker: VirtualBroker) -> None:
    (partition,) = broker.topic().partitions
    producer = producer_of(broker, transactions.LEGACY, partition.leader)
    assert producer.end() == ErrorCode.NONE
    assert producer.add() == {ErrorCode.NONE}
    move_leader(broker, transaction_partition(broker), NO_LEADER)
    producer.client = broker.client(node_id=partition.leader)
    assert producer.send(b"w") == ErrorCode.NOT_ENOUGH_REPLICAS


def test_offsets_of_a_group_on_another_broker_are_committed_with_the_transaction(broker: VirtualBroker) -> None:
    broker.topic()
    group = group_partition(broker)
    separate_coordinator(broker, group)
    producer = initialized_producer(broker)
    assert producer.add_offsets("group") == ErrorCode.NONE
    coordinator, producer.client = producer.client, client_of(broker, group)
    assert producer.commit_offset("group", 9) == ErrorCode.NONE
    reader = client_of(broker, group)
    assert fetched(reader.call(fetch_request(), 9))["t", 0][0] == -1
    producer.client = coordinator
    assert producer.end() == ErrorCode.NONE
    assert fetched(reader.call(fetch_request(), 9))["t", 0][0] == 9


def test_marker_is_written_when_the_partition_has_a_leader_again(broker: VirtualBroker) -> None:
    (partition,) = broker.topic().partitions
    producer = producer_of(broker, transactions.LEGACY, partition.leader)
    leader = partition.leader
    move_leader(broker, partition, NO_LEADER)
    assert producer.end() == ErrorCode.NONE
    assert producer.end() == ErrorCode.CONCURRENT_TRANSACTIONS
    broker.advance(1_000)
    move_leader(broker, partition, leader)
    broker.advance(1_000)
    assert [header.is_control for header, _ in transactions.stored(broker)] == [False, True]
    assert producer.end() == ErrorCode.NONE


def test_next_coordinator_completes_a_prepared_transaction(broker: VirtualBroker) -> None:
    (partition,) = broker.topic().partitions
    producer = producer_of(broker, transactions.LEGACY, partition.leader)
    leader, coordinator = partition.leader, transaction_partition(broker)
    move_leader(broker, partition, NO_LEADER)
    assert producer.end() == ErrorCode.NONE
    move_leader(broker, coordinator, other_node(coordinator))
    move_leader(broker, partition, leader)
    broker.advance(1_000)
    assert [header.is_control for header, _ in transactions.stored(broker)] == [False, True]
    producer.client = client_of(broker, coordinator)
    assert producer.end() == ErrorCode.NONE


def test_marker_of_an_older_coordinator_epoch_is_fenced(broker: VirtualBroker) -> None:
    (partition,) = broker.topic().partitions
    move_leader(broker, transaction_partition(broker), other_node(transaction_partition(broker)))
    producer = producer_of(broker, transactions.LEGACY, partition.leader)
    assert producer.end() == ErrorCode.NONE
    leader = broker.cluster_server.brokers[partition.leader]
    stale = Marker(producer.producer_id, producer.epoch, False, 0, 0)
    assert write_marker(leader, partition, stale, 0) == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_producer_ids_are_unique_across_brokers(broker: VirtualBroker) -> None:
    ids = [initialized_producer(broker, transactional_id=name).producer_id for name in "abcde"]
    assert len(set(ids)) == len(ids)


def test_transaction_state_is_not_written_below_min_insync_replicas() -> None:
    broker = three_brokers(*ONE_PARTITION)
    partition = transaction_partition(broker)
    partition.isr = (partition.leader,)
    producer = transactions.Producer(broker)
    producer.client = client_of(broker, partition)
    assert producer.init() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    partition.isr = partition.replicas
    assert producer.init() == ErrorCode.NONE


def test_single_broker_coordinates_every_group() -> None:
    broker = VirtualBroker()
    stable_group(broker)
    heartbeat = HeartbeatRequest(group_id="group", member_id="member", generation_id=1)
    assert broker.client().call(heartbeat, 4).error_code == ErrorCode.NONE


# -- deleted topics ----------------------------------------------------------------------------------------------------


def test_coordinators_drop_the_state_that_a_deleted_topic_stored() -> None:
    broker = broker_with_topic()
    producer = transactions.begun(broker)
    assert commit_code(broker.client().call(commit_request(7), 8)) == ErrorCode.NONE
    for topic in (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC):
        broker.broker.delete_topic(broker.broker.internal_topic(topic))
        assert topic not in broker.broker.cluster.topics
    assert broker.broker.transactions.get("tx") is None
    group_partition(broker)  # creates the topic again
    assert fetched(broker.client().call(fetch_request(version=5), 5)) == {("t", 0): (-1, ErrorCode.NONE)}
    assert producer.end() == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_requests_fail_if_the_topic_of_the_coordinator_cannot_be_created() -> None:
    """A request that is processed in slices may have found its coordinator before."""
    broker = broker_with_topic()
    producer = transactions.begun(broker)
    del broker.broker.cluster.topics[TRANSACTION_STATE_TOPIC]
    broker.broker.cluster.unregister(broker.broker.node_id)
    assert commit_code(broker.client().call(commit_request(), 8)) == ErrorCode.NOT_COORDINATOR
    assert producer.end() == ErrorCode.COORDINATOR_NOT_AVAILABLE
