"""The reconciliation of a member with its target assignment. Follows Kafka's CurrentAssignmentBuilder.

No partition ever has two owners. A member first gives up partitions, in its old epoch. When it has confirmed that, it
moves to the target's epoch and receives partitions as soon as their owners release them. Its states:

    Stable                in the target's epoch, with its whole target
    UnrevokedPartitions   in its old epoch, with partitions to give up within the rebalance timeout
    UnreleasedPartitions  in the target's epoch, without the partitions that others have not released

and their transitions at a heartbeat:

    Stable                in the target's epoch                  unchanged
    Stable                in another epoch                       the next assignment
    UnrevokedPartitions   may own partitions to give up          unchanged
    UnrevokedPartitions   reports that it owns none of them      the next assignment
    UnreleasedPartitions  any                                    the next assignment

Topics that a member no longer subscribes to are revoked at once, and not assigned again, even before a new target.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

from sluice.broker.coordinator.group.assignors.spec import Assignment

from .member import ConsumerMember, MemberState, PartitionEpochs

Owned = Sequence[tuple[bytes, Sequence[int]]] | None


class Goal(NamedTuple):
    epoch: int
    target: Assignment
    subscribed: Container[bytes]
    owner_of: Callable[[bytes, int], str | None]  # the member that owns, or may own, a partition
    subscription_changed: bool


def reconcile(member: ConsumerMember, goal: Goal, owned: Owned) -> ConsumerMember:
    if member.state is MemberState.STABLE and member.member_epoch == goal.epoch:
        return _without_unsubscribed(member, goal, owned) if goal.subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS and _may_own(member.pending_revocation, owned):
        return _without_unsubscribed(member, goal, owned) if goal.subscription_changed else member
    return _next_assignment(member, goal, owned)


def _next_assignment(member: ConsumerMember, goal: Goal, owned: Owned) -> ConsumerMember:
    kept: dict[bytes, dict[int, int]] = {}
    lost: dict[bytes, dict[int, int]] = {}
    for topic, epochs in member.assigned.items():
        target = goal.target.get(topic, ()) if topic in goal.subscribed else ()
        for partition, epoch in epochs.items():
            (kept if partition in target else lost).setdefault(topic, {})[partition] = epoch
    if lost and _may_own(lost, owned):
        return member.at_epoch(member.member_epoch)._replace(
            state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=lost
        )
    all_free = _assign_free(member, goal, kept)
    state = MemberState.STABLE if all_free else MemberState.UNRELEASED_PARTITIONS
    return member.at_epoch(goal.epoch)._replace(state=state, assigned=kept, pending_revocation={})


def _assign_free(member: ConsumerMember, goal: Goal, assigned: dict[bytes, dict[int, int]]) -> bool:
    all_free = True
    for topic, partitions in goal.target.items():
        if topic not in goal.subscribed:
            continue
        for partition in sorted(partitions):
            if partition in assigned.get(topic, ()):
                continue
            # A partition that the member had to give up may return to it.
            if goal.owner_of(topic, partition) in (None, member.member_id):
                assigned.setdefault(topic, {})[partition] = goal.epoch
            else:
                all_free = False
    return all_free


def _without_unsubscribed(member: ConsumerMember, goal: Goal, owned: Owned) -> ConsumerMember:
    kept = {topic: epochs for topic, epochs in member.assigned.items() if topic in goal.subscribed}
    if len(kept) == len(member.assigned):
        return member
    lost: dict[bytes, Mapping[int, int]] = dict(member.pending_revocation)
    for topic, epochs in member.assigned.items():
        if topic not in goal.subscribed:
            lost[topic] = {**lost.get(topic, {}), **epochs}
    changed = member.at_epoch(member.member_epoch)._replace(assigned=kept)
    if _may_own(lost, owned):
        return changed._replace(state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=lost)
    return changed


def _may_own(lost: PartitionEpochs, owned: Owned) -> bool:
    if owned is None:
        return True
    return any(partition in lost.get(topic, ()) for topic, partitions in owned for partition in partitions)
