"""Events: what happens to an application or to the cluster at a request.

Each function returns whether it had an effect. They happen as in reality: a leader moves to another replica, a session
ends in the coordinator, and a second member or producer is a client of its own.
"""

import asyncio
from collections.abc import Collection, Coroutine, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from sluice.broker.broker import Broker
from sluice.broker.controller.controller import RUNNING
from sluice.broker.coordinator.common.coordinator_log import partition_for
from sluice.broker.coordinator.group.classic.group import ClassicGroup
from sluice.broker.coordinator.group.classic.member import ClassicMember
from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.broker.coordinator.group.consumer.member import ConsumerMember
from sluice.broker.coordinator.group.modern_group import TimerKind
from sluice.broker.coordinator.transaction.coordinator import ProducerResult
from sluice.broker.faults.actions.disks import SlowDisk
from sluice.broker.faults.requests.fault_execution import FaultExecution
from sluice.broker.faults.rule import Rule
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, FollowerLag, Partition
from sluice.broker.server.cluster_server import ClusterServer
from sluice.client.consumer import Consumer
from sluice.embedded.broker import CLIENT_ID
from sluice.protocol.apis.fetch import FetchRequest
from sluice.protocol.entities import reader_of
from sluice.protocol.errors import ErrorCode
from sluice.purgatory.operation import DelayedOperation

from .process_loop import ProcessLoop
from .processes import Processes

# The client id of clients that explore itself runs; their requests are no points.
OWN_ID = "sluice-explore"
# Those, and `Broker.client`.
OWN_CLIENTS = frozenset((OWN_ID, CLIENT_ID))
# Other leaders are elected first. Shorter than in reality (9 s), where runs would last longer.
ELECTION_MS = 2000
DOWN_S = 5.0
SECOND_MEMBER_S = 10.0
CLOCK_JUMP_S = 3600.0
_SLOW_DISK = "500ms"
SLOW_DISK_S = 10.0
_POLL_MS = 200.0
_RETRY_S = 0.1
_TRANSACTION_TIMEOUT_MS = 60_000  # the default of clients


class Hit(NamedTuple):
    """A request at which something happens, and what it happens to."""

    execution: FaultExecution
    server: ClusterServer
    processes: Processes
    loop: ProcessLoop
    host: str  # of the client
    clients: set[asyncio.Task[None]]  # own clients that run until the end of the run

    @property
    def broker(self) -> Broker:
        return self.execution.broker


# -- applications ------------------------------------------------------------------------------------------------------


def kill(hit: Hit) -> bool:
    return hit.processes.kill(hit.host)


def cancel(hit: Hit) -> bool:
    return hit.processes.cancel(hit.host)


def pause(hit: Hit) -> bool:
    return hit.processes.pause(hit.host)


def start_second(hit: Hit) -> bool:
    return hit.processes.start_another(hit.host)


# -- groups and transactions -------------------------------------------------------------------------------------------


def expire_session(hit: Hit) -> bool:
    """End the session of the client's member, as if its heartbeats were missing."""
    for membership in [*_memberships(hit)]:
        session = membership.session
        if session is not None and session.force_complete():
            session.on_expiration()
            if membership.member_id not in membership.group.members:
                return True
    return False


def rebalance(hit: Hit) -> bool:
    """Let a second member join the client's group, and leave it."""
    for membership in _memberships(hit):
        if membership.topics:
            # It processes nothing.
            config = {"group.id": membership.group.group_id, "enable.auto.commit": "false", **membership.protocol}
            _start(hit, _join_and_leave(_config(hit) | config, sorted(membership.topics)))
            return True
    return False


async def _join_and_leave(config: dict[str, str], topics: Sequence[str]) -> None:
    loop = asyncio.get_running_loop()
    async with Consumer(config) as consumer:
        consumer.subscribe(topics)
        end = loop.time() + SECOND_MEMBER_S
        while loop.time() < end:
            await consumer.poll(_POLL_MS)


def fence_producer(hit: Hit) -> bool:
    """Initialize another producer with the transactional id, which aborts its transaction and raises its epoch."""
    _, _, transactional_ids = _named(hit)
    for transactional_id in transactional_ids:
        partition = partition_for(hit.server.cluster.internal_topic(TRANSACTION_STATE_TOPIC), transactional_id)
        coordinator = hit.server.brokers.get(partition.leader)
        if coordinator is not None:
            _initialize(coordinator, hit.loop, transactional_id)
            return True
    return False


def _initialize(coordinator: Broker, loop: ProcessLoop, transactional_id: str) -> None:
    def done(result: ProducerResult) -> None:
        if result.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:  # until the transaction is aborted
            loop.call_later(_RETRY_S, _initialize, coordinator, loop, transactional_id)

    coordinator.transactions.init_producer_id(transactional_id, _TRANSACTION_TIMEOUT_MS, None, done)


def move_coordinator(hit: Hit) -> bool:
    """Move the coordinators of the groups and transactional ids in the request to other brokers."""
    _, groups, transactional_ids = _named(hit)
    found = [(GROUP_METADATA_TOPIC, each) for each in groups]
    found += [(TRANSACTION_STATE_TOPIC, each) for each in transactional_ids]
    cluster = hit.server.cluster
    return _move_leaders(hit, [partition_for(cluster.internal_topic(topic), key) for topic, key in found])


# -- brokers -----------------------------------------------------------------------------------------------------------


def move_leader(hit: Hit) -> bool:
    """Move the leaders of the partitions in the request to other replicas in sync."""
    places, _, _ = _named(hit)
    topics = hit.server.cluster.topics
    found = [topics[topic].partition(index) for topic, index in dict.fromkeys(places) if topic in topics]
    return _move_leaders(hit, [partition for partition in found if partition is not None])


def kill_broker(hit: Hit) -> bool:
    """Kill the broker that handles the request, and start it again: with all that it has written."""
    return _kill_broker(hit)


def lose_broker(hit: Hit) -> bool:
    """As `kill_broker`, but it is not started again."""
    return _kill_broker(hit, returns=False)


def power_off_broker(hit: Hit) -> bool:
    """As `kill_broker`, but without its page cache: its last batches are lost where no other replica has them."""
    return _kill_broker(hit, loses_cache=True)


def slow_disk(hit: Hit) -> bool:
    """Make the disk of the broker slow for a time."""
    rule = Rule(action=SlowDisk(latency=_SLOW_DISK), broker=[hit.broker.node_id], during=f"{SLOW_DISK_S:g}s")
    hit.server.faults.add(rule)
    return True


def jump_clock(hit: Hit) -> bool:
    """Set the wall clock forward."""
    hit.loop.set_wall_clock(CLOCK_JUMP_S)
    return True


# -- details -----------------------------------------------------------------------------------------------------------


def _named(hit: Hit) -> tuple[Sequence[tuple[str, int]], Sequence[str], Sequence[str]]:
    """Return the partitions, groups and transactional ids in the request."""
    request = hit.execution.request
    places, groups, ids = reader_of(hit.execution.ctx.route.api_key)(request, hit.broker.metadata.topics_by_id)
    if isinstance(request, FetchRequest) and request.session_epoch > 0:
        places = [*places, *hit.broker.fetch_sessions.partitions_of(request.session_id)]
    return places, groups, [each for each in ids if each]


class _Membership(NamedTuple):
    """A member of a group.

    session: its timer; None if the member has none now
    topics, protocol: what another member subscribes to, and the config with which it joins by the classic protocol
    """

    group: ClassicGroup | ConsumerGroup
    member_id: str
    session: DelayedOperation | None
    topics: Collection[str]
    protocol: dict[str, str]


def _memberships(hit: Hit) -> Iterator[_Membership]:
    """Yield the client's memberships in groups."""
    session = hit.execution.ctx.session
    for broker in hit.server.brokers.values():
        groups = Broker.groups.if_made(broker)
        for group in () if groups is None else groups.groups.values():
            if not isinstance(group, ClassicGroup | ConsumerGroup):
                continue
            for member in group.members.values():
                if (member.client_id, member.client_host) == (session.client_id, session.client_host):
                    yield _membership(group, member)


def _membership(group: ClassicGroup | ConsumerGroup, member: ClassicMember | ConsumerMember) -> _Membership:
    member_id = member.member_id
    if isinstance(member, ConsumerMember):
        assert isinstance(group, ConsumerGroup)
        timer = group.timers.get((TimerKind.SESSION, member_id))
        return _Membership(group, member_id, timer, member.subscribed_topic_names, {})
    assert isinstance(group, ClassicGroup)
    topics = (group.subscribed_topics or ()) if group.protocol_name else ()
    protocol = {"partition.assignment.strategy": group.protocol_name or ""}
    return _Membership(group, member_id, member.session, topics, protocol)


def _config(hit: Hit) -> dict[str, str]:
    addresses = (str(server.endpoints[0]) for server in hit.server.servers.values())
    return {"bootstrap.servers": ",".join(addresses), "client.id": OWN_ID}


def _start(hit: Hit, client: Coroutine[object, object, None]) -> None:
    hit.clients.add(hit.loop.create_task(client))


def _move_leaders(hit: Hit, partitions: Sequence[Partition]) -> bool:
    controller = hit.server.cluster.controller
    moved = False
    for partition in partitions:
        others = [each for each in partition.isr if each != partition.leader and controller.is_live(each)]
        if others:
            moved |= controller.move_leader(partition, others[0]) is None
    return moved


def _kill_broker(hit: Hit, *, loses_cache: bool = False, returns: bool = True) -> bool:
    server, node_id = hit.server, hit.broker.node_id
    if server.cluster.controller.state(node_id) is not RUNNING:
        return False
    # The handling of the request ends first.
    hit.loop.call_soon(partial(_stop_broker, server, hit.loop, node_id, loses_cache=loses_cache, returns=returns))
    return True


def _stop_broker(server: ClusterServer, loop: ProcessLoop, node_id: int, *, loses_cache: bool, returns: bool) -> None:
    if server.is_stopping or server.cluster.controller.state(node_id) is not RUNNING:
        return
    led = [each for topic in server.cluster.topics.values() for each in topic.partitions if each.leader == node_id]
    server.stop_broker(node_id, controlled=False)
    for partition in led if loses_cache else ():
        log = partition.log
        if partition.isr == (node_id,) and log.log_end_offset > log.log_start_offset:
            end = log.batch_start(log.log_end_offset - 1)
            partition.lagging_followers[node_id] = FollowerLag(end, server.cluster.runtime.clock.monotonic_ms())
    if returns:
        loop.call_later(DOWN_S, _start_broker, server, node_id)


def _start_broker(server: ClusterServer, node_id: int) -> None:
    if not server.is_stopping and server.cluster.controller.has_stopped(node_id):
        server.start_broker_soon(node_id, _ignore)


def _ignore(problem: object) -> None:
    """Do nothing: a broker that cannot start stays down."""
