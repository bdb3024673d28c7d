"""Coordinators of a cluster: each key's is the leader of its partition, and moves with it."""

from collections.abc import Callable
from typing import Any

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
from sluice.protocol.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.coordinators import move_leader
from tests.support.groups import (
    Member,
    commit_code,
    commit_request,
    fetch_request,
    fetched,
    settle_round,
    stable_group,
)
from tests.support.transactions import (
    LEGACY,
    NEW,
    Producer,
    add_request,
    end_request,
    init_request,
    offsets_request,
    stored,
)
from tests.support.virtual_broker import Client, VirtualBroker
from tests.support.wire import error_codes

NODES = (1, 2, 3)
ONE_PARTITION = ("offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1")


def three(*overrides: str) -> VirtualBroker:
    return VirtualBroker("sluice.brokers=3", *overrides)


def of_groups(broker: VirtualBroker, key: str = "group") -> Partition:
    return CoordinatorLog(broker.broker, GROUP_METADATA_TOPIC).partition_of(key)


def of_transactions(broker: VirtualBroker, key: str = "tx") -> Partition:
    return CoordinatorLog(broker.broker, TRANSACTION_STATE_TOPIC).partition_of(key)


def elsewhere(partition: Partition) -> int:
    """A broker that does not lead it."""
    return next(node_id for node_id in NODES if node_id != partition.leader)


def client_of(broker: VirtualBroker, partition: Partition) -> Client:
    return broker.client(node_id=partition.leader)


# -- where they are ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 6])
@pytest.mark.parametrize("node_id", NODES)
@pytest.mark.parametrize(
    ("key_type", "partition_of"),
    [pytest.param(0, of_groups, id="a group"), pytest.param(1, of_transactions, id="an id")],
)
def test_every_broker_tells_who_leads_a_keys_partition(
    key_type: int, partition_of: Callable[[VirtualBroker, str], Partition], node_id: int, version: int
) -> None:
    broker = three()
    client = broker.client(node_id=node_id)
    keys = [f"key-{number}" for number in range(8)]
    for key in keys:
        answer = client.ask(FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key]), version)
        found = answer.coordinators[0] if version >= 4 else answer
        leader = partition_of(broker, key).leader
        port = broker.cluster_server.servers[leader].endpoints[0].port
        assert (found.error_code, found.node_id, found.port) == (ErrorCode.NONE, leader, port)
    assert {partition_of(broker, key).leader for key in keys} == set(NODES)


@pytest.mark.parametrize(("version", "message"), [(1, "The coordinator is not available."), (6, "")])
def test_nobody_coordinates_a_partition_without_a_leader(version: int, message: str) -> None:
    broker = three()
    move_leader(broker, of_groups(broker), NO_LEADER)
    answer = broker.client().ask(FindCoordinatorRequest(key="group", coordinator_keys=["group"]), version)
    found = answer.coordinators[0] if version >= 4 else answer
    assert (found.error_code, found.node_id, found.error_message) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, message)


# -- what the others say -----------------------------------------------------------------------------------------------

OF_GROUPS: dict[str, tuple[Callable[[], Message], int]] = {
    "JoinGroup": (lambda: Member.join_request(_member()), 9),
    "SyncGroup": (lambda: Member.sync_request(_member()), 5),
    "Heartbeat": (lambda: HeartbeatRequest(group_id="group", member_id="m"), 4),
    "LeaveGroup": (lambda: LeaveGroupRequest(group_id="group", members=[MemberIdentity(member_id="m")]), 5),
    "ConsumerGroupHeartbeat": (
        lambda: ConsumerGroupHeartbeatRequest(
            group_id="group",
            member_id="m",
            rebalance_timeout_ms=1,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        ),
        1,
    ),
    "OffsetCommit": (commit_request, 9),
    "OffsetFetch v1": (lambda: fetch_request(version=1), 1),
    "OffsetFetch v2": (lambda: fetch_request(version=2), 2),
    "OffsetFetch v8": (lambda: fetch_request(), 8),
    "OffsetDelete": (
        lambda: OffsetDeleteRequest(
            group_id="group",
            topics=[OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])],
        ),
        0,
    ),
    "TxnOffsetCommit": (lambda: offsets_request(0, 0, "group"), 5),
    "DescribeGroups": (lambda: DescribeGroupsRequest(groups=["group"]), 6),
    "ConsumerGroupDescribe": (lambda: ConsumerGroupDescribeRequest(group_ids=["group"]), 1),
    "DeleteGroups": (lambda: DeleteGroupsRequest(groups_names=["group"]), 2),
}
OF_TRANSACTIONS: dict[str, tuple[Callable[[], Message], int]] = {
    "InitProducerId": (init_request, 5),
    "AddPartitionsToTxn": (lambda: add_request(3, 0, 0), 3),
    "EndTxn": (lambda: end_request(0, 0), 5),
    "DescribeTransactions": (lambda: DescribeTransactionsRequest(transactional_ids=["tx"]), 0),
}
LOADING_SAYS = {"Heartbeat": ErrorCode.NONE}  # a member need not know


def _member() -> Member:
    member = Member.__new__(Member)
    member.group_id, member.member_id, member.instance_id, member.generation_id = "group", "", None, 1
    return member


def codes(answer: Any) -> set[int]:
    """All error codes in an answer but for those that say nothing."""
    return {code for code in error_codes(answer) if code} or {0}


@pytest.mark.parametrize(("request_of", "version"), OF_GROUPS.values(), ids=OF_GROUPS)
def test_another_broker_is_not_the_coordinator_of_a_group(request_of: Callable[[], Message], version: int) -> None:
    broker = three()
    broker.topic()
    node_id = elsewhere(of_groups(broker))
    assert codes(broker.client(node_id=node_id).ask(request_of(), version)) == {ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize(("request_of", "version"), OF_TRANSACTIONS.values(), ids=OF_TRANSACTIONS)
def test_another_broker_is_not_the_coordinator_of_a_transactional_id(
    request_of: Callable[[], Message], version: int
) -> None:
    broker = three()
    broker.topic()
    node_id = elsewhere(of_transactions(broker))
    assert codes(broker.client(node_id=node_id).ask(request_of(), version)) == {ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize(
    ("api", "request_of", "version"),
    [(api, *how) for api, how in (OF_GROUPS | OF_TRANSACTIONS).items()],
    ids=OF_GROUPS | OF_TRANSACTIONS,
)
def test_a_coordinator_that_loads_says_so(api: str, request_of: Callable[[], Message], version: int) -> None:
    broker = VirtualBroker("sluice.coordinator.load.delay.ms=1000", *ONE_PARTITION)
    broker.topic()
    client = broker.client()
    broker.broker.cluster.internal_topic(TRANSACTION_STATE_TOPIC)
    assert broker.broker.transactions.shards.is_loading
    expected = LOADING_SAYS.get(api, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert codes(client.ask(request_of(), version)) == {expected}
    broker.advance(1_000)
    client.send(request_of(), version)
    assert all(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS not in codes(one.message) for one in client.take_answers())


@pytest.mark.parametrize(
    ("request_", "topic"),
    [
        pytest.param(ListGroupsRequest(), GROUP_METADATA_TOPIC, id="groups"),
        pytest.param(ListTransactionsRequest(), TRANSACTION_STATE_TOPIC, id="transactions"),
    ],
)
def test_nothing_is_listed_while_some_of_it_is_loaded(request_: Message, topic: str) -> None:
    broker = VirtualBroker("sluice.coordinator.load.delay.ms=1000", *ONE_PARTITION)
    broker.broker.cluster.internal_topic(topic)
    assert broker.broker.groups.shards.is_loading or broker.broker.transactions.shards.is_loading
    client, version = broker.client(), 1 if isinstance(request_, ListTransactionsRequest) else 5
    assert client.ask(request_, version).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    broker.advance(1_000)
    assert client.ask(request_, version).error_code == ErrorCode.NONE


def test_a_broker_lists_its_own_groups_and_transactions() -> None:
    broker = three()
    broker.topic()
    names = [f"g-{number}" for number in range(6)]
    for name in names:
        client_of(broker, of_groups(broker, name)).ask(commit_request(group_id=name), 9)
        producer = Producer(broker, transactional_id=name)
        producer.client = client_of(broker, of_transactions(broker, name))
        assert producer.init() == ErrorCode.NONE
    for node_id in NODES:
        client = broker.client(node_id=node_id)
        groups = {group.group_id for group in client.ask(ListGroupsRequest(), 5).groups}
        assert groups == {name for name in names if of_groups(broker, name).leader == node_id}
        ids = {one.transactional_id for one in client.ask(ListTransactionsRequest(), 1).transaction_states}
        assert ids == {name for name in names if of_transactions(broker, name).leader == node_id}


# -- moving ------------------------------------------------------------------------------------------------------------


def group_on(broker: VirtualBroker, node_id: int) -> ClassicGroup:
    group = broker.cluster_server.brokers[node_id].groups.groups["group"]
    assert isinstance(group, ClassicGroup)
    return group


def members_of(broker: VirtualBroker, *instance_ids: str | None) -> list[Member]:
    """A stable group of static and other members, on the broker that coordinates it."""
    partition = of_groups(broker)
    members = []
    for instance_id in instance_ids:
        member = Member(broker, instance_id=instance_id)
        member.client = client_of(broker, partition)
        members.append(member)
        member.send_join()
    broker.advance(10_000)
    settle_round(members)
    return members


def test_a_group_rides_over_a_move_without_a_rebalance() -> None:
    broker = three()
    broker.topic()
    members = members_of(broker, "i", None, "j", None)
    members[0].commit(5)
    partition = of_groups(broker)
    before, after = partition.leader, elsewhere(partition)
    broker.advance(4_000)
    move_leader(broker, partition, after)
    assert broker.cluster_server.brokers[before].groups.groups == {}
    assert [member.heartbeat() for member in members] == [ErrorCode.NOT_COORDINATOR] * 4
    for member in members:
        member.client = broker.client(node_id=after)
    broker.advance(9_999)  # whole sessions, from the load on
    assert [member.heartbeat() for member in members] == [ErrorCode.NONE] * 4
    group = group_on(broker, after)
    assert (group.state, group.generation_id, len(group.members)) == (STABLE, 1, 4)
    assert fetched(members[0].client.ask(fetch_request(), 9))["t", 0] == (5, ErrorCode.NONE)
    again = Member(broker, instance_id="i")
    again.client = broker.client(node_id=after)
    again.send_join()
    assert again.joined().error_code == ErrorCode.NONE
    assert group.state is STABLE


def test_who_waits_for_a_round_is_told_to_look_elsewhere_when_its_coordinator_moves() -> None:
    broker = three()
    (member,) = members_of(broker, None)
    newcomer = Member(broker)
    newcomer.client = client_of(broker, of_groups(broker))
    newcomer.send_join()
    assert newcomer.client.answers == []
    move_leader(broker, of_groups(broker), elsewhere(of_groups(broker)))
    assert newcomer.joined().error_code == ErrorCode.NOT_COORDINATOR
    broker.advance(60_000)
    assert newcomer.client.answers == []
    assert member.client.is_open


def test_timers_go_with_the_coordinator() -> None:
    broker = three()
    members_of(broker, None)
    partition = of_groups(broker)
    before = broker.cluster_server.brokers[partition.leader].groups
    move_leader(broker, partition, elsewhere(partition))
    assert (len(before.heartbeats), len(before.rebalances)) == (0, 0)


def test_a_commit_whose_replicas_are_late_is_not_answered_before_they_have_it() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=100")
    broker.topic()
    client = broker.client()
    client.send(commit_request(), 9)
    assert client.answers == []
    client.end()
    reader = broker.client()
    reader.send(fetch_request(), 9)
    broker.advance(99)
    assert (client.answers, reader.answers) == ([], [])  # nor is it told to anybody
    broker.advance(1)
    assert commit_code(client.answer().message) == ErrorCode.NONE
    assert fetched(reader.answer().message)["t", 0] == (7, ErrorCode.NONE)


def test_a_commit_whose_leader_is_another_one_before_the_replicas_have_it_is_not_committed() -> None:
    broker = three("sluice.replication.delay.ms=100", *ONE_PARTITION)
    broker.topic()
    partition = of_groups(broker)
    client = client_of(broker, partition)
    client.send(commit_request(), 9)
    partition.log.truncate_to(0)
    move_leader(broker, partition, elsewhere(partition))
    assert commit_code(client.answer().message) == ErrorCode.NOT_COORDINATOR
    client = client_of(broker, partition)
    assert fetched(client.ask(fetch_request(), 9))["t", 0] == (-1, ErrorCode.NONE)


def test_a_commit_whose_replicas_are_too_late_is_told_so() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=60000", "offsets.commit.timeout.ms=2000")
    broker.topic()
    client = broker.client()
    client.send(commit_request(), 9)
    broker.advance(2_000)
    assert commit_code(client.answer().message) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    client.send(fetch_request(), 9)
    broker.advance(2_000)
    assert client.answer().message.groups[0].error_code == ErrorCode.NOT_COORDINATOR


def test_an_assignment_is_told_when_the_replicas_have_it() -> None:
    broker = VirtualBroker("sluice.replication.delay.ms=100", "group.initial.rebalance.delay.ms=0")
    member = Member(broker, instance_id="i")
    member.send_join()
    broker.advance(100)
    member.joined()
    member.send_sync({member.member_id: b"mine"})
    broker.advance(99)
    assert member.client.answers == []
    broker.advance(1)
    assert member.client.answer().message.assignment == b"mine"


# -- transactions over several brokers ---------------------------------------------------------------------------------


def producer_of(broker: VirtualBroker, versions: dict[str, int], leader: int) -> Producer:
    """A producer whose transactional requests go to its coordinator; records go where "t" is led."""
    producer = Producer(broker, versions)
    producer.client = client_of(broker, of_transactions(broker))
    assert producer.init() == ErrorCode.NONE
    if producer.adds_partitions:
        assert producer.add() == {ErrorCode.NONE}
    coordinator, producer.client = producer.client, broker.client(node_id=leader)
    assert producer.send(b"v") == ErrorCode.NONE
    producer.client = coordinator
    return producer


@pytest.mark.parametrize("versions", [LEGACY, NEW], ids=["a legacy client", "a client of version 2"])
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_markers_go_to_the_leaders_of_partitions(versions: dict[str, int], committed: bool) -> None:
    broker = three()
    (partition,) = broker.topic().partitions
    if of_transactions(broker).leader == partition.leader:
        move_leader(broker, of_transactions(broker), elsewhere(partition))
    producer = producer_of(broker, versions, partition.leader)
    assert partition.log.last_stable_offset == 0
    assert producer.end(committed) == ErrorCode.NONE
    assert partition.log.last_stable_offset == partition.log.log_end_offset == 2
    assert [header.is_control for header, _ in stored(broker)] == [False, True]


def test_a_producer_that_is_not_in_a_transaction_is_found_out_across_brokers() -> None:
    broker = three()
    (partition,) = broker.topic().partitions
    if of_transactions(broker).leader == partition.leader:
        move_leader(broker, of_transactions(broker), elsewhere(partition))
    producer = Producer(broker)
    producer.client = client_of(broker, of_transactions(broker))
    assert producer.init() == ErrorCode.NONE
    producer.client = broker.client(node_id=partition.leader)
    assert producer.send(b"v") == ErrorCode.TRANSACTION_ABORTABLE


def test_records_of_an_id_that_nobody_coordinates_wait() -> None:
    broker = three()
    (partition,) = broker.topic().partitions
    producer = producer_of(broker, LEGACY, partition.leader)
    assert producer.end() == ErrorCode.NONE
    assert producer.add() == {ErrorCode.NONE}
    move_leader(broker, of_transactions(broker), NO_LEADER)
    producer.client = broker.client(node_id=partition.leader)
    assert producer.send(b"w") == ErrorCode.NOT_ENOUGH_REPLICAS


def test_offsets_of_a_group_elsewhere_are_committed_with_the_transaction() -> None:
    broker = three()
    broker.topic()
    group = of_groups(broker)
    if of_transactions(broker).leader == group.leader:
        move_leader(broker, of_transactions(broker), elsewhere(group))
    producer = Producer(broker)
    producer.client = client_of(broker, of_transactions(broker))
    assert producer.init() == ErrorCode.NONE
    assert producer.add_offsets("group") == ErrorCode.NONE
    coordinator, producer.client = producer.client, client_of(broker, group)
    assert producer.commit_offset("group", 9) == ErrorCode.NONE
    reader = client_of(broker, group)
    assert fetched(reader.ask(fetch_request(), 9))["t", 0][0] == -1
    producer.client = coordinator
    assert producer.end() == ErrorCode.NONE
    assert fetched(reader.ask(fetch_request(), 9))["t", 0][0] == 9


def test_a_partition_without_a_leader_gets_its_marker_when_it_has_one() -> None:
    broker = three()
    (partition,) = broker.topic().partitions
    producer = producer_of(broker, LEGACY, partition.leader)
    leader = partition.leader
    move_leader(broker, partition, NO_LEADER)
    assert producer.end() == ErrorCode.NONE
    assert producer.end() == ErrorCode.CONCURRENT_TRANSACTIONS
    broker.advance(1_000)
    move_leader(broker, partition, leader)
    broker.advance(1_000)
    assert [header.is_control for header, _ in stored(broker)] == [False, True]
    assert producer.end() == ErrorCode.NONE


def test_a_transaction_that_was_decided_is_completed_by_the_next_coordinator() -> None:
    broker = three()
    (partition,) = broker.topic().partitions
    producer = producer_of(broker, LEGACY, partition.leader)
    leader, coordinator = partition.leader, of_transactions(broker)
    move_leader(broker, partition, NO_LEADER)
    assert producer.end() == ErrorCode.NONE
    move_leader(broker, coordinator, elsewhere(coordinator))
    move_leader(broker, partition, leader)
    broker.advance(1_000)
    assert [header.is_control for header, _ in stored(broker)] == [False, True]
    producer.client = client_of(broker, coordinator)
    assert producer.end() == ErrorCode.NONE


def test_the_markers_of_an_earlier_coordinator_are_refused() -> None:
    broker = three()
    (partition,) = broker.topic().partitions
    move_leader(broker, of_transactions(broker), elsewhere(of_transactions(broker)))
    producer = producer_of(broker, LEGACY, partition.leader)
    assert producer.end() == ErrorCode.NONE
    leader = broker.cluster_server.brokers[partition.leader]
    late = Marker(producer.producer_id, producer.epoch, False, 0, 0)
    assert write_marker(leader, partition, late, 0) == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_producer_ids_are_ones_own_on_whichever_broker() -> None:
    broker = three()
    ids = []
    for name in ("a", "b", "c", "d", "e"):
        producer = Producer(broker, transactional_id=name)
        producer.client = client_of(broker, of_transactions(broker, name))
        assert producer.init() == ErrorCode.NONE
        ids.append(producer.producer_id)
    assert len(set(ids)) == len(ids)


def test_a_step_is_not_taken_while_too_few_replicas_are_in_sync() -> None:
    broker = three(*ONE_PARTITION)
    partition = of_transactions(broker)
    partition.topic.min_insync_replicas = 2
    partition.isr = (partition.leader,)
    producer = Producer(broker)
    producer.client = client_of(broker, partition)
    assert producer.init() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    partition.isr = partition.replicas
    assert producer.init() == ErrorCode.NONE


def test_a_group_of_one_broker_is_where_it_was() -> None:
    broker = VirtualBroker()
    stable_group(broker)
    heartbeat = HeartbeatRequest(group_id="group", member_id="member", generation_id=1)
    assert broker.client().ask(heartbeat, 4).error_code == ErrorCode.NONE
