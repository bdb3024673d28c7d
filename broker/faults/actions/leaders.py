"""Actions on leadership: slow and unclean elections, a lost controller, moved leaders and coordinators."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Annotated, ClassVar

import msgspec

from sluice.broker.controller.controller import Controller
from sluice.broker.coordinator.common.coordinator_log import partition_for
from sluice.broker.faults.fault import Fault, StateAction, check_several
from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.matching.values import Duration, RuleProblem, parse_ms, parse_positive_ms
from sluice.broker.faults.target import FaultTarget, TargetInfo
from sluice.broker.faults.undo import Undo, undo_all
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, NO_LEADER, TRANSACTION_STATE_TOPIC, Partition
from sluice.errors import ClusterError

_PATTERN = frozenset("*?[")
_OF_PARTITIONS = frozenset({"topic", "partition"})
_ELECTS = "the upstream cluster elects its leaders."
NodeId = Annotated[int | None, msgspec.Meta(description="node id of the new leader; default: the next replica in sync")]


class ControllerLost(StateAction, frozen=True, tag="controller-lost"):
    """Makes the controller unreachable: no broker is fenced, no leader elected, and its requests wait."""

    FIELDS: ClassVar[frozenset[str]] = StateAction.FIELDS - {"broker"}
    PROXY_REFUSAL: ClassVar[str] = "the upstream cluster has the controller. Use error with code NOT_CONTROLLER"

    def begin(self, fault: Fault, target: FaultTarget) -> Undo:
        return target.cluster.controller.make_unavailable()


class SlowElection(StateAction, frozen=True, tag="slow-election"):
    """Leaves partitions without a leader for the duration of an election."""

    FIELDS: ClassVar[frozenset[str]] = StateAction.FIELDS - {"broker"}
    PROXY_REFUSAL: ClassVar[str] = f"{_ELECTS} Use unknown-leader"

    takes: Annotated[Duration, msgspec.Meta(description="duration of an election")]

    def check(self, match: Match) -> None:
        parse_positive_ms(self.takes, "action.takes")

    def begin(self, fault: Fault, target: FaultTarget) -> Undo:
        return target.cluster.controller.slow(parse_ms(self.takes, "action.takes"))


class UncleanElection(StateAction, frozen=True, tag="unclean-election"):
    """Elects leaders that lack the last records, which remain lost when the rule ends."""

    FIELDS: ClassVar[frozenset[str]] = StateAction.FIELDS | _OF_PARTITIONS
    PROXY_REFUSAL: ClassVar[str] = f"{_ELECTS} Use offset-lie"

    records: Annotated[
        int, msgspec.Meta(ge=1, description="records lost per partition; batches are lost as a whole")
    ] = 1
    to: NodeId = None

    def check_target(self, fault: Fault, target: TargetInfo) -> None:
        check_several(target, self.to, "action.to")

    def begin(self, fault: Fault, target: FaultTarget) -> None:
        controller = target.cluster.controller
        partitions = _matched(fault, target)
        for partition in partitions:
            problem = controller.unclean_problem(partition, self.to)
            if problem is not None:
                raise ClusterError(problem)
        for partition in partitions:
            controller.elect_uncleanly(partition, self.to, self.records)


class LeaderMoved(StateAction, frozen=True, tag="leader-moved"):
    """Moves leaders to other replicas in sync, and back when the rule ends."""

    FIELDS: ClassVar[frozenset[str]] = StateAction.FIELDS | _OF_PARTITIONS
    PROXY_REFUSAL: ClassVar[str] = f"{_ELECTS} Use wrong-leader, or error with code NOT_LEADER_OR_FOLLOWER"

    to: NodeId = None

    def check_target(self, fault: Fault, target: TargetInfo) -> None:
        check_several(target, self.to, "action.to")

    def begin(self, fault: Fault, target: FaultTarget) -> Undo:
        return _move(fault, target, _matched(fault, target), self.to)


class CoordinatorMoved(StateAction, frozen=True, tag="coordinator-moved"):
    """Moves the coordinators of groups and transactions, and back when the rule ends."""

    FIELDS: ClassVar[frozenset[str]] = StateAction.FIELDS | {"group", "transactional_id"}
    PROXY_REFUSAL: ClassVar[str] = f"{_ELECTS} Use error with code NOT_COORDINATOR"

    to: NodeId = None

    def check_target(self, fault: Fault, target: TargetInfo) -> None:
        check_several(target, self.to, "action.to")
        for name in ("group", "transactional_id"):
            key = getattr(fault.rule, name)
            if key is not None and _PATTERN & {*key}:
                problem = f"expected a name, got the pattern {key!r}. Omit it to move all coordinators"
                raise RuleProblem(name, problem)

    def begin(self, fault: Fault, target: FaultTarget) -> Undo:
        found = [each for each in dict.fromkeys(_coordinating(fault, target)) if fault.match.hits_broker(each.leader)]
        if not found:
            raise ClusterError("no coordinator matches; coordinators exist once a group was used")
        return _move(fault, target, found, self.to)


def _coordinating(fault: Fault, target: FaultTarget) -> Iterator[Partition]:
    cluster, rule = target.cluster, fault.rule
    keys = {GROUP_METADATA_TOPIC: rule.group, TRANSACTION_STATE_TOPIC: rule.transactional_id}
    names_any = any(key is not None for key in keys.values())
    for topic, key in keys.items():
        if key is not None:
            yield partition_for(cluster.internal_topic(topic), key)
        elif not names_any and topic in cluster.topics:
            yield from cluster.topics[topic].partitions


def _matched(fault: Fault, target: FaultTarget) -> list[Partition]:
    """Return the matching partitions with a leader; internal topics match only by name."""
    match, named = fault.match, fault.rule.topic is not None
    found = [
        partition
        for topic in target.cluster.topics.values()
        if named or not topic.is_internal
        for partition in topic.partitions
        if match.hits_partition(topic.name, partition.index)
        and partition.leader != NO_LEADER
        and match.hits_broker(partition.leader)
    ]
    if not found:
        topics = ", ".join(target.cluster.topics) or "none"
        raise ClusterError(f"no partition with a leader matches; topics are {topics}")
    return found


def _move(fault: Fault, target: FaultTarget, partitions: Iterable[Partition], to: int | None) -> Undo:
    """Move leaders; the rule ends when other means have moved all of them again."""
    controller = target.cluster.controller
    moves = {partition: _target(controller, partition, to) for partition in partitions}
    moved = {*moves}

    def undone(partition: Partition) -> None:
        moved.discard(partition)
        if not moved:
            fault.end()

    return undo_all(
        fault.owner.leader_moves.move(partition, to, partial(undone, partition)) for partition, to in moves.items()
    )


def _target(controller: Controller, partition: Partition, to: int | None) -> int:
    if to is not None:
        return to
    others = [each for each in partition.replicas if each in partition.isr and controller.is_live(each)]
    after = others[others.index(partition.leader) + 1 :] if partition.leader in others else others
    found = next(iter([*after, *others]), partition.leader)
    if found == partition.leader:
        raise ClusterError(f"{partition} has no other replica in sync")
    return found
