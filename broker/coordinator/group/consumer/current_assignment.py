"""From what a member has to what it shall have, one heartbeat at a time. Follows Kafka's CurrentAssignmentBuilder.

Theory of operation. The target assignment changes at once; members follow, each on its own, without ever a partition in
two hands. So a member that has to lose partitions is told so first, and stays in its epoch until it says that they are
gone; only then it moves to the target's epoch and is given what it has to get, as far as others have let go of it:

    Stable                at the target's epoch, has all of it
    UnrevokedPartitions   in its old epoch, was told to give partitions up; the rebalance timeout is running
    UnreleasedPartitions  at the target's epoch, has all that is free; takes the rest with heartbeats to come

    state                 what the heartbeat finds                          what comes of it
    Stable                the target's epoch                                nothing
    Stable                another epoch                                     the next assignment (below)
    UnrevokedPartitions   the member still has some of what it has to lose  nothing
    UnrevokedPartitions   it has none of that, by its own words             the next assignment
    UnreleasedPartitions  anything                                          the next assignment

The next assignment: has to lose something, and may still have it -> UnrevokedPartitions; something to get is still
another's -> the target's epoch, UnreleasedPartitions; else the target's epoch, Stable.

What a member has of topics it does not subscribe to any more is taken away at once, even where no new target is there
yet. (Until a target that knows of the change comes, nothing of theirs is given either.)
"""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

from sluice.broker.coordinator.group.assignors.spec import Assignment

from .member import ConsumerMember, MemberState, PartitionEpochs

# What a member says it has: topic ids and partitions; None where it does not say.
Owned = Sequence[tuple[bytes, Sequence[int]]] | None


class Goal(NamedTuple):
    """Where a member has to go, and what is in its way."""

    epoch: int  # of the target assignment
    target: Assignment  # this member's
    subscribed: Container[bytes]  # topic ids
    owner_of: Callable[[bytes, int], str | None]  # who has a partition now, or may still have it
    subscription_changed: bool  # with this very heartbeat


def reconcile(member: ConsumerMember, goal: Goal, owned: Owned) -> ConsumerMember:
    """The member after a heartbeat in which it said that it has `owned`."""
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
    all_free = _take_free(member, goal, kept)
    state = MemberState.STABLE if all_free else MemberState.UNRELEASED_PARTITIONS
    return member.at_epoch(goal.epoch)._replace(state=state, assigned=kept, pending_revocation={})


def _take_free(member: ConsumerMember, goal: Goal, assigned: dict[bytes, dict[int, int]]) -> bool:
    """Adds what the target says and nobody else has; returns whether that is all of it."""
    all_free = True
    for topic, partitions in goal.target.items():
        if topic not in goal.subscribed:
            continue
        for partition in sorted(partitions):
            if partition in assigned.get(topic, ()):
                continue
            # What the member itself has to lose it may have back.
            if goal.owner_of(topic, partition) in (None, member.member_id):
                assigned.setdefault(topic, {})[partition] = goal.epoch
            else:
                all_free = False
    return all_free


def _without_unsubscribed(member: ConsumerMember, goal: Goal, owned: Owned) -> ConsumerMember:
    """Takes away what is of topics that the member does not subscribe to."""
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
    return changed  # they are gone already


def _may_own(lost: PartitionEpochs, owned: Owned) -> bool:
    """Whether the member has any of these, or may have, as it does not say."""
    if owned is None:
        return True
    return any(partition in lost.get(topic, ()) for topic, partitions in owned for partition in partitions)
