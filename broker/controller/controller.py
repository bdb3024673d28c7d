"""The controller: liveness of brokers and leaders of partitions (ReplicationControlManager, BrokerHeartbeatManager).

In a controlled shutdown, a broker gives up its leaderships before it is *stopped*. An *isolated* broker is reached by
its clients, but not by the controller and the other brokers (isolation.py).

The controller *fences* a broker that is away for `sluice.election.delay.ms`: the broker leaves all ISRs except those
whose last member it is, and its partitions elect other leaders (elections.py). A broker that returns is unfenced at
once, catches up, and joins the ISRs (replication.py). One that restarts earlier is fenced first, as a new process.

Brokers receive changes after `sluice.metadata.lag.ms` (metadata_publisher.py), but the old and the new leader of a
partition at once.

While fault rules make the controller *unavailable*, brokers are not fenced or unfenced, replicas do not join an ISR, no
leader is elected, and forwarded requests wait; all of this happens afterwards. While elections are *slow*, a partition
has no leader until its election ends.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial

from sluice.broker.metadata.topic import NO_LEADER, FollowerLag, Partition, Topic
from sluice.protocol.errors import ErrorCode

from .cluster_state import ClusterMember, ClusterState
from .elections import Election, elect
from .isolation import IsolatedMetadata
from .metadata_publisher import MetadataPublisher
from .reassignment import Plan, Replicas, completed
from .replication import Replication


class BrokerState(Enum):
    RUNNING = "running"
    STOPPED = "stopped"
    ISOLATED = "isolated"


RUNNING, STOPPED, ISOLATED = BrokerState
TRANSITIONS = {
    "stop": {RUNNING: STOPPED, ISOLATED: STOPPED},
    "start": {STOPPED: RUNNING},
    "isolate": {RUNNING: ISOLATED},
    "rejoin": {ISOLATED: RUNNING},
}
# Interval between the attempts to end an election while the controller is unavailable.
_ELECTION_RETRY_MS = 100


class Controller:
    def __init__(self, cluster: ClusterState) -> None:
        config = cluster.config
        self.replication = Replication(cluster, self.is_running, self._expand_isr, self._shrink_isr)
        self.publisher = MetadataPublisher(cluster)
        self._cluster = cluster
        self._states = dict.fromkeys(cluster.brokers, RUNNING)
        self._absences = dict.fromkeys(cluster.brokers, 0)
        self._outages = 0
        self._slow: list[float] = []  # duration of elections in ms, by fault rule
        self._elections: dict[Partition, tuple[int, tuple[int, ...]]] = {}
        self.on_leader_change: Callable[[Partition], None] = _ignore  # also when a partition is deleted
        self._election_delay_ms = config.integer("sluice.election.delay.ms")
        if config.boolean("auto.leader.rebalance.enable"):
            interval_ms = config.integer("leader.imbalance.check.interval.seconds") * 1000
            cluster.runtime.scheduler.schedule(interval_ms, self._elect_preferred_leaders)

    # -- brokers -------------------------------------------------------------------------------------------------------

    def state(self, node_id: int) -> BrokerState:
        return self._states[node_id]

    def added(self, node_id: int) -> None:
        """Start with a broker that joined the cluster after the controller was made."""
        self._states[node_id] = RUNNING
        self._absences[node_id] = 0

    def is_running(self, node_id: int) -> bool:
        return self._states.get(node_id) is RUNNING

    def has_stopped(self, node_id: int) -> bool:
        return self._states.get(node_id) is STOPPED

    def transition_error(self, node_id: int, event: str) -> str | None:
        state = self._states[node_id]
        return None if state in TRANSITIONS[event] else f"broker {node_id} is {state.value}"

    def shut_down(self, node_id: int) -> None:
        if not self.is_unavailable:
            self._fence(node_id)
        self._on_broker_down(node_id, STOPPED)

    def crashed(self, node_id: int) -> None:
        self._on_broker_down(node_id, STOPPED)

    def isolate(self, node_id: int) -> None:
        broker = self._cluster.brokers[node_id]
        cluster = self._cluster
        broker.isolate(IsolatedMetadata(cluster.topics, cluster.fenced, cluster.brokers, node_id))
        cluster.metadata_generation += 1
        self._hold_forwarded(broker)
        self._on_broker_down(node_id, ISOLATED)

    def started(self, broker: ClusterMember) -> None:
        node_id = broker.node_id
        self.publisher.begin(broker)
        self._hold_forwarded(broker)
        if node_id not in self._cluster.fenced and not self.is_unavailable:
            self._fence(node_id)
        self._on_broker_up(node_id)

    def rejoin(self, node_id: int) -> None:
        broker = self._cluster.brokers[node_id]
        isolated = broker.rejoin(self._cluster.new_metadata())
        self._hold_forwarded(broker)
        self.publisher.begin(broker)
        if isinstance(isolated, IsolatedMetadata):
            for stale, partition in isolated.resign_stale_leaders():
                broker.replicas.complete_delayed_operations(stale)
                broker.stopped_leading(partition)
        self._on_broker_up(node_id)
        for partition in self._partitions():
            if partition.leader == node_id:  # elected while it was isolated
                broker.started_leading(partition)

    def _on_broker_down(self, node_id: int, state: BrokerState) -> None:
        was_running = self.is_running(node_id)
        self._states[node_id] = state
        self._journal_state(node_id, state.value)
        if was_running:
            self._absences[node_id] += 1
            self.replication.broker_away(node_id)
            expire_session = partial(self._expire_session, node_id, self._absences[node_id])
            self._cluster.runtime.scheduler.schedule_once(self._election_delay_ms, expire_session)
        if state is STOPPED:
            stopped = self._cluster.brokers[node_id]
            for broker in self._cluster.brokers.values():  # their requests to it get no response
                broker.replicas.produces.check_and_complete(stopped)

    def _expire_session(self, node_id: int, absence: int) -> None:
        missed = not self.is_running(node_id) and self._absences[node_id] == absence and not self.is_unavailable
        if missed and node_id not in self._cluster.fenced:
            self._fence(node_id)

    def unregistered(self, node_id: int) -> None:
        if node_id not in self._cluster.fenced:
            self._fence(node_id)

    def _fence(self, node_id: int) -> None:
        self._cluster.fenced.add(node_id)
        self._cluster.metadata_generation += 1
        self._journal_state(node_id, "fenced")
        self.publisher.brokers_changed()
        for partition in self._partitions():
            if node_id in partition.isr or partition.leader == node_id:
                isr = tuple(other for other in partition.isr if other != node_id) or partition.isr
                self._elect(partition, self._online_election(partition), isr)

    def _on_broker_up(self, node_id: int) -> None:
        self._states[node_id] = RUNNING
        self._cluster.unregistered.discard(node_id)
        self._journal_state(node_id, RUNNING.value)
        if not self.is_unavailable:
            self._unfence(node_id)
        self.replication.broker_back(node_id)

    def _unfence(self, node_id: int) -> None:
        if node_id in self._cluster.fenced:
            self._cluster.fenced.discard(node_id)
            self._cluster.metadata_generation += 1
            self._journal_state(node_id, "unfenced")
            self.publisher.brokers_changed()
            for partition in self._partitions():
                if partition.leader == NO_LEADER and node_id in partition.replicas:
                    self._elect(partition, self._online_election(partition), partition.isr)

    def _journal_state(self, node_id: int, state: str) -> None:
        if self._cluster.journal is not None:
            self._cluster.journal.add_cluster_event("broker-state", node_id, state=state)

    def is_live(self, node_id: int) -> bool:
        return node_id in self._states and node_id not in self._cluster.fenced

    # -- failures of the controller ------------------------------------------------------------------------------------

    @property
    def is_unavailable(self) -> bool:
        return self._outages > 0

    def make_unavailable(self) -> Callable[[], None]:
        """Make the controller unreachable until every returned function is called."""
        self._outages += 1
        self._cluster.metadata_generation += 1
        self._hold_forwarded_of_all()
        return self._make_available

    def _make_available(self) -> None:
        self._outages -= 1
        self._cluster.metadata_generation += 1
        if self.is_unavailable:
            return
        for node_id in self._states:
            if node_id in self._cluster.unregistered:
                continue
            if self.is_running(node_id):
                self._unfence(node_id)
            elif node_id not in self._cluster.fenced:
                self._fence(node_id)
        self.replication.catch_up()
        self._hold_forwarded_of_all()

    def _hold_forwarded_of_all(self) -> None:
        for broker in self._cluster.brokers.values():
            self._hold_forwarded(broker)

    def _hold_forwarded(self, broker: ClusterMember) -> None:
        broker.hold_forwarded(self.is_unavailable or broker.is_isolated)

    def slow(self, election_ms: float) -> Callable[[], None]:
        """Make new elections take this long until the returned function is called; the longest applies."""
        self._slow.append(election_ms)
        return partial(self._slow.remove, election_ms)

    def unclean_problem(self, partition: Partition, node_id: int | None) -> str | None:
        if self.is_unavailable or not self._unclean_candidates(partition, node_id):
            other = "no other replica" if node_id is None else f"no replica on broker {node_id}"
            return f"{partition} has {other} that could lead"
        return None

    def elect_uncleanly(self, partition: Partition, node_id: int | None, records: int) -> None:
        """Make another replica (default: the first live one) the leader, which lacks the last `records` records.

        Only whole batches are lost, so more records may be.
        """
        chosen = self._unclean_candidates(partition, node_id)[0]
        log = partition.log
        end = log.batch_start(max(log.log_start_offset, log.log_end_offset - records))
        partition.lagging_followers[chosen] = FollowerLag(end, self._cluster.runtime.clock.monotonic_ms())
        self._change(partition, chosen, (chosen,))

    def _unclean_candidates(self, partition: Partition, node_id: int | None) -> list[int]:
        wanted = partition.replicas if node_id is None else [node_id]
        others = [other for other in wanted if other in partition.replicas and other != partition.leader]
        return list(filter(self.is_live, others))

    # -- leaders -------------------------------------------------------------------------------------------------------

    def elect_leader(self, partition: Partition, election: Election) -> ErrorCode:
        preferred = election is Election.PREFERRED
        if self.is_unavailable:
            return ErrorCode.REQUEST_TIMED_OUT
        if partition.leader == partition.replicas[0] if preferred else partition.leader != NO_LEADER:
            return ErrorCode.ELECTION_NOT_NEEDED
        if self._elect(partition, election, partition.isr):
            return ErrorCode.NONE
        if preferred:
            return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE

    def move_leader(self, partition: Partition, node_id: int) -> str | None:
        """Make an in-sync replica the leader. Kafka's protocol has no such request."""
        if node_id not in partition.replicas:
            return f"broker {node_id} has no replica of {partition}; expected one of {_listed(partition.replicas)}"
        if node_id not in partition.isr:
            return f"broker {node_id} is not in sync for {partition}; expected one of {_listed(partition.isr)}"
        if not self.is_live(node_id):
            return f"broker {node_id} is {self._states[node_id].value}"
        if self.is_unavailable:
            return "the controller is unavailable because of a fault rule"
        if partition.leader != node_id:
            self._change(partition, node_id, partition.isr)
        return None

    def configured(self, topic: Topic) -> None:
        for partition in topic.partitions:
            if partition.leader == NO_LEADER:
                self._elect(partition, self._online_election(partition), partition.isr)
            else:
                self.replication.configured(partition)

    def created(self, partition: Partition) -> None:
        self.replication.begin(partition)
        self.publisher.partition_created(partition)

    def deleted(self, partition: Partition) -> None:
        self.publisher.partition_deleted(partition)
        self.on_leader_change(partition)

    def _online_election(self, partition: Partition) -> Election:
        unclean = partition.topic.config.boolean("unclean.leader.election.enable")
        return Election.UNCLEAN if unclean else Election.ONLINE

    def _elect_preferred_leaders(self) -> None:
        for partition in () if self.is_unavailable else self._partitions():
            if partition.leader != partition.replicas[0]:
                self._elect(partition, Election.PREFERRED, partition.isr)

    def _elect(self, partition: Partition, election: Election, isr: tuple[int, ...]) -> bool:
        before = partition.leader
        elected = elect(election, before, partition.replicas, isr, self.is_live)
        if (elected.leader, elected.isr) != (before, partition.isr):
            self._change(partition, elected.leader, elected.isr)
        return elected.leader != before

    def _change(self, partition: Partition, leader: int, isr: tuple[int, ...]) -> None:
        if partition in self._elections:
            self._elections[partition] = leader, isr
        elif self._slow and leader not in (partition.leader, NO_LEADER):
            self._elections[partition] = leader, isr
            self._cluster.runtime.scheduler.schedule_once(max(self._slow), partial(self._elected, partition))
            self._apply_change(partition, NO_LEADER, partition.isr)
        else:
            self._apply_change(partition, leader, isr)

    def _elected(self, partition: Partition) -> None:
        if self.is_unavailable:
            self._cluster.runtime.scheduler.schedule_once(_ELECTION_RETRY_MS, partial(self._elected, partition))
            return
        leader, isr = self._elections.pop(partition)
        if partition.deleted:
            return
        if not self.is_live(leader):
            leader, isr = elect(self._online_election(partition), NO_LEADER, partition.replicas, isr, self.is_live)
        self._apply_change(partition, leader, isr)

    def _apply_change(self, partition: Partition, leader: int, isr: tuple[int, ...]) -> None:
        partition.partition_epoch += 1
        if leader == partition.leader:
            partition.isr = isr
            self.replication.update(partition)
        else:
            self._change_leader(partition, leader, isr)
        self._publish_change(partition)
        self.on_leader_change(partition)

    def _publish_change(self, partition: Partition) -> None:
        self._cluster.metadata_generation += 1
        if self._cluster.metadata_log is not None:
            self._cluster.metadata_log.partition_changed(partition)
        self.publisher.partition_changed(partition)

    def _change_leader(self, partition: Partition, leader: int, isr: tuple[int, ...]) -> None:
        brokers, log = self._cluster.brokers, partition.log
        before = brokers.get(partition.leader)
        end = self.replication.offset_of(partition, leader)
        for broker in brokers.values():
            if isinstance(broker.metadata, IsolatedMetadata):
                broker.metadata.retain_partition(partition, shares_log=leader == NO_LEADER)
        self._journal_leader(partition, leader, isr, log.log_end_offset - end)
        partition.leader, partition.isr = leader, isr
        partition.leader_epoch += 1
        if leader != NO_LEADER:
            log.truncate_to(end)
            log.begin_epoch(partition.leader_epoch)
            partition.epoch_start_offset = end
            self.replication.new_leader(partition)
        if before is not None and not before.is_isolated:
            before.stopped_leading(partition)
        after = brokers.get(leader)
        if after is not None and not after.is_isolated:
            after.started_leading(partition)
        self._cluster.complete_delayed_produces(partition)  # records that the old leader appended may be lost

    def _journal_leader(self, partition: Partition, leader: int, isr: tuple[int, ...], lost_records: int) -> None:
        if self._cluster.journal is not None:
            self._cluster.journal.add_cluster_event(
                "leader-change",
                leader,
                topic=partition.topic.name,
                partition=partition.index,
                before=partition.leader,
                leader_epoch=partition.leader_epoch + 1,
                isr=list(isr),
                lost_records=lost_records if leader != NO_LEADER else 0,
            )

    # -- in-sync replicas ----------------------------------------------------------------------------------------------

    def _expand_isr(self, partition: Partition, node_id: int) -> None:
        if node_id not in partition.isr and self.is_live(node_id) and not self.is_unavailable:
            order = partition.replicas
            isr = tuple(sorted((*partition.isr, node_id), key=order.index))
            self._change(partition, partition.leader, isr)
            self.complete_reassignment(partition)

    def _shrink_isr(self, partition: Partition, node_id: int) -> bool:
        if self.is_unavailable:
            return False
        self._change(partition, partition.leader, tuple(other for other in partition.isr if other != node_id))
        return True

    # -- reassignments -------------------------------------------------------------------------------------------------

    def reassign(self, partition: Partition, plan: Plan) -> None:
        """Start to move a partition; it has old and new replicas until the new ones are in sync."""
        partition.replicas, partition.adding, partition.removing = plan
        partition.partition_epoch += 1
        for node_id in plan.adding:
            if node_id not in partition.isr and node_id not in partition.lagging_followers:
                self.replication.add(partition, node_id)
        self._publish_change(partition)
        self.replication.follow(partition, plan.adding)
        self.complete_reassignment(partition)

    def complete_reassignment(self, partition: Partition) -> None:
        done = completed(partition)
        if done is not None:
            self.settle(partition, done)

    def settle(self, partition: Partition, settled: Replicas) -> None:
        replicas, isr = settled
        removed = set(partition.replicas) - set(replicas)
        partition.replicas, partition.adding, partition.removing = replicas, (), ()
        self._cluster.metadata_generation += 1
        partition.lagging_followers = {
            node_id: one for node_id, one in partition.lagging_followers.items() if node_id in replicas
        }
        elected = elect(self._online_election(partition), partition.leader, replicas, isr, self.is_live)
        if elected.leader == partition.leader and removed:
            # A new epoch makes clients of the removed replicas refresh their metadata.
            self._bump_leader_epoch(partition)
        self._change(partition, *elected)

    def _bump_leader_epoch(self, partition: Partition) -> None:
        partition.leader_epoch += 1
        partition.log.begin_epoch(partition.leader_epoch)
        partition.epoch_start_offset = partition.log.log_end_offset
        self.replication.new_leader(partition)

    def _partitions(self) -> Iterator[Partition]:
        for topic in list(self._cluster.topics.values()):
            yield from topic.partitions


def _ignore(partition: Partition) -> None:
    pass


def _listed(node_ids: tuple[int, ...]) -> str:
    return ", ".join(map(str, node_ids))
