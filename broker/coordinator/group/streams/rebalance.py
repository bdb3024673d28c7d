"""The rebalance of a Streams group: bump the epoch, compute a target, reconcile members, remove members.

Follows the Streams part of Kafka's GroupMetadataManager (maybeUpdateStreamsTargetAssignment, maybeReconcile,
streamsGroupFenceMember) and TargetAssignmentBuilder. group.py explains the epochs.
"""

from collections.abc import Collection
from functools import partial

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.group import HeartbeatError
from sluice.broker.coordinator.group.metadata_hash import metadata_hash
from sluice.broker.coordinator.group.modern_group import MemberSlot, TimerKind
from sluice.broker.coordinator.group.runtime import GroupRuntime
from sluice.protocol.apis import streams_group_heartbeat as api
from sluice.protocol.errors import ErrorCode

from .configured_topology import ConfiguredTopology, configure
from .current_assignment import Goal, reconcile
from .group import StreamsGroup, topology_record
from .member import MemberState, StreamsMember, Task, Tasks, by_subtopology
from .sticky_assignor import MemberSpec, SubtopologySpec, assign
from .topology import InvalidTopologyError, Topology

STANDBY_REPLICAS, RACK_TAGS = "num.standby.replicas", "rack.aware.assignment.tags"  # keys of assignment configs
_NO_TARGET = Tasks()


class StreamsRebalance:
    def __init__(self, runtime: GroupRuntime) -> None:
        self._runtime = runtime
        self._cluster = runtime.host.cluster

    def partition_count(self, topic: str) -> int | None:
        found = self._cluster.topics.get(topic)
        return None if found is None else len(found.partitions)

    # -- topics --------------------------------------------------------------------------------------------------------

    def metadata_hash(self, topology: Topology) -> int:
        topics = (self._cluster.topics.get(name) for name in topology.required_topics)
        return metadata_hash((topic for topic in topics if topic is not None), self._cluster.racks)

    def configure(
        self, group: StreamsGroup, topology: Topology, current_hash: int
    ) -> ConfiguredTopology | HeartbeatError:
        if group.configured is not None and current_hash == group.metadata_hash:
            return group.configured
        try:
            return configure(topology, self.partition_count)
        except InvalidTopologyError as error:
            return error.response

    # -- from a request to an assignment -------------------------------------------------------------------------------

    def change(
        self,
        group: StreamsGroup,
        slot: MemberSlot[StreamsMember],
        updated: StreamsMember,
        topology: tuple[Topology, ConfiguredTopology, int],
        records: list[KeyValue],
        *,
        by_instance: bool,
    ) -> None:
        """Update member and topology; bump the group epoch if the target depends on the changes.

        A request without an instance id bumps it for any change of the member, as in Kafka.
        """
        member, replaced = slot
        is_empty = group.is_empty
        if replaced is not None:
            records += group.replace_static(replaced, member, _NO_TARGET)
        changed = False
        if updated != member:
            records.append(group.member_record(updated))
            changed = not by_instance or _affects_target(member, updated)
        if updated != group.members.get(updated.member_id):
            group.put(updated)
        wanted, configured, current_hash = topology
        if group.topology is None:
            records.append(topology_record(group.group_id, wanted))
        group.topology, group.configured = wanted, configured
        validated = wanted.epoch if configured.problem is None else -1
        configs = self._assignment_configs(group)
        before = group.metadata_hash, group.validated_topology_epoch, dict(group.assignment_configs)
        if changed or before != (current_hash, validated, configs):
            group.metadata_hash, group.validated_topology_epoch = current_hash, validated
            group.assignment_configs = configs
            group.group_epoch += 1
            records.append(group.group_record())
        if is_empty:
            self._delay_assignment(group)

    def _assignment_configs(self, group: StreamsGroup) -> dict[str, str]:
        settings = self._runtime.group_configs(group.group_id)
        tags = settings.names("streams.rack.aware.assignment.tags")
        configs = {STANDBY_REPLICAS: str(settings.integer("streams.num.standby.replicas"))}
        return configs | {RACK_TAGS: ",".join(tags)} if tags else configs

    def update_target(self, group: StreamsGroup, records: list[KeyValue]) -> str | None:
        """Compute a new target if it is due; return why it is delayed, or None."""
        if group.initial_delay is not None:
            return "Assignment delayed due to the configured initial rebalance delay."
        if group.assignment_epoch >= group.group_epoch:
            return None
        now_ms = self._runtime.now_ms()
        interval_ms = self._runtime.group_configs(group.group_id).integer("streams.assignment.interval.ms")
        if not group.is_assignment_due(now_ms, interval_ms):
            return "Assignment delayed due to the configured assignment interval."
        records += group.set_target(_assign(group), _NO_TARGET, now_ms)
        return None

    def reconcile(
        self, group: StreamsGroup, member: StreamsMember, owned: Tasks | None, records: list[KeyValue]
    ) -> StreamsMember:
        # During the initial delay, members have no tasks.
        target = _NO_TARGET if group.initial_delay is not None else group.target.get(member.member_id, _NO_TARGET)
        goal = Goal(
            group.assignment_epoch, target, group.active_process, group.standby_processes, group.warmup_processes
        )
        reconciled = reconcile(member, goal, owned)
        if reconciled == member:
            return member
        group.put(reconciled)
        records.append(group.current_record(reconciled))
        if reconciled.state is MemberState.UNREVOKED_TASKS:
            self.await_revocation(group, reconciled)
        else:
            group.cancel_timer(TimerKind.REVOKE, reconciled.member_id)
        return reconciled

    def partitions_by_endpoint(self, group: StreamsGroup) -> list[api.EndpointToPartitions]:
        """Return the partitions at each endpoint, for interactive queries (Kafka's EndpointToPartitionsManager)."""
        return [
            api.EndpointToPartitions(
                user_endpoint=api.Endpoint(host=member.user_endpoint.host, port=member.user_endpoint.port),
                active_partitions=self._inputs(group, member.assigned.active),
                standby_partitions=self._inputs(group, member.assigned.standby | member.assigned.warmup),
            )
            for member in group.members.values()
            if member.user_endpoint is not None and group.configured is not None
        ]

    def _inputs(self, group: StreamsGroup, tasks: Collection[Task]) -> list[api.TopicPartition]:
        assert group.configured is not None
        subtopologies = group.configured.subtopologies
        # A topic may have fewer partitions than its sub-topology has tasks.
        partitions = [
            api.TopicPartition(
                topic=topic, partitions=[index for index in indexes if index < (self.partition_count(topic) or 0)]
            )
            for subtopology_id, indexes in by_subtopology(tasks).items()
            if subtopology_id in subtopologies
            for topic in sorted(subtopologies[subtopology_id].inputs)
        ]
        return [one for one in partitions if one.partitions]

    # -- removal -------------------------------------------------------------------------------------------------------

    def remove(self, group: StreamsGroup, member_id: str) -> ErrorCode:
        group.remove(member_id)
        group.group_epoch += 1
        records = [*group.member_tombstones(member_id), group.group_record()]
        if group.is_empty:  # the next member gets a target at once
            records.append(group.set_assignment_epoch(0))
        return self._runtime.write_or_restore(group.group_id, records)

    # -- timers --------------------------------------------------------------------------------------------------------

    def _delay_assignment(self, group: StreamsGroup) -> None:
        delay_ms = self._runtime.group_configs(group.group_id).integer("streams.initial.rebalance.delay.ms")
        if delay_ms and group.initial_delay is None:
            group.initial_delay = self._runtime.await_rebalance(delay_ms, partial(self._end_initial_delay, group))

    def _end_initial_delay(self, group: StreamsGroup) -> None:
        group.initial_delay = None
        records: list[KeyValue] = []
        if not group.is_empty and group.configured is not None:
            self.update_target(group, records)
        self._runtime.write_or_restore(group.group_id, records)

    def restart_session(self, group: StreamsGroup, member_id: str) -> None:
        timeout_ms = self._runtime.group_configs(group.group_id).integer("streams.session.timeout.ms")
        expire = partial(self.remove, group, member_id)
        group.set_timer(TimerKind.SESSION, member_id, self._runtime.await_heartbeat(timeout_ms, expire))

    def await_revocation(self, group: StreamsGroup, member: StreamsMember) -> None:
        expire = partial(self.remove, group, member.member_id)
        timer = self._runtime.await_rebalance(member.rebalance_timeout_ms, expire)
        group.set_timer(TimerKind.REVOKE, member.member_id, timer)


def _affects_target(before: StreamsMember, after: StreamsMember) -> bool:
    relevant = ((one.topology_epoch, one.rack_id, one.client_tags, one.process_id) for one in (before, after))
    return next(relevant) != next(relevant)


def _assign(group: StreamsGroup) -> dict[str, Tasks]:
    configured = group.configured
    assert configured is not None
    if configured.problem is not None:
        return {}
    members = {
        member_id: MemberSpec(
            member.process_id, member.assigned.active, member.assigned.standby, group.offsets_of(member_id).offsets
        )
        for member_id, member in group.members.items()
    }
    subtopologies = {
        name: SubtopologySpec(one.task_count, one.is_stateful) for name, one in configured.subtopologies.items()
    }
    return assign(members, subtopologies, int(group.assignment_configs[STANDBY_REPLICAS]))
