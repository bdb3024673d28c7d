"""One reconciliation step from a member's current assignment to its target assignment."""

from typing import Any

import pytest

from sluice.broker.coordinator.group.consumer.current_assignment import Goal, Owned, reconcile
from sluice.broker.coordinator.group.consumer.member import ConsumerMember, MemberState

T, U = b"t" * 16, b"u" * 16
STABLE, UNREVOKED, UNRELEASED = MemberState
OLD, NEW = 5, 6  # epochs


def member(state: MemberState = STABLE, epoch: int = OLD, **fields: Any) -> ConsumerMember:
    return ConsumerMember("m", member_epoch=epoch, previous_member_epoch=epoch, state=state, **fields)


def goal(
    target: dict[bytes, set[int]],
    *,
    epoch: int = NEW,
    subscribed: tuple[bytes, ...] = (T, U),
    others: tuple[tuple[bytes, int], ...] = (),
    mine: tuple[tuple[bytes, int], ...] = (),
    changed: bool = False,
) -> Goal:
    owners = dict.fromkeys(others, "other") | dict.fromkeys(mine, "m")
    return Goal(epoch, target, subscribed, lambda topic, partition: owners.get((topic, partition)), changed)


HAS_01 = {T: {0: 3, 1: 4}}
STABLE_01 = member(assigned=HAS_01)
AWAITING = member(UNRELEASED, NEW, assigned=HAS_01)
REVOKING = member(UNREVOKED, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}})
CASES = {
    "current assignment equals the target": (STABLE_01, goal({T: {0, 1}}, epoch=OLD), None, STABLE_01),
    "free partitions are assigned immediately": (
        member(),
        goal({T: {0, 1}}),
        [],
        member(epoch=NEW, assigned={T: {0: NEW, 1: NEW}}),
    ),
    "partitions of other members are awaited in the new epoch": (
        STABLE_01,
        goal({T: {0, 1, 2}}, others=((T, 2),)),
        [],
        AWAITING,
    ),
    "awaited partitions are assigned when they are free": (
        AWAITING,
        goal({T: {0, 1, 2}}),
        None,
        member(epoch=NEW, assigned={T: {0: 3, 1: 4, 2: NEW}}),
    ),
    "free partitions are assigned while others are awaited": (
        AWAITING,
        goal({T: {0, 1, 2, 3}}, others=((T, 3),)),
        None,
        member(UNRELEASED, NEW, assigned={T: {0: 3, 1: 4, 2: NEW}}),
    ),
    "removed partitions are revoked first, in the old epoch": (STABLE_01, goal({T: {0, 2}}), [(T, [0, 1])], REVOKING),
    "a heartbeat without owned partitions may own all": (STABLE_01, goal({T: {0}}), None, REVOKING),
    "partitions that are already revoked need no extra step": (
        STABLE_01,
        goal({T: {0, 2}}),
        [(T, [0])],
        member(epoch=NEW, assigned={T: {0: 3, 2: NEW}}),
    ),
    "still owned partitions delay the next epoch": (REVOKING, goal({T: {0, 2}}), [(T, [1])], REVOKING),
    "a heartbeat without owned partitions does not confirm the revocation": (
        REVOKING,
        goal({T: {0, 2}}),
        None,
        REVOKING,
    ),
    "a confirmed revocation moves the member to the next epoch": (
        REVOKING,
        goal({T: {0, 2}}),
        [(T, [0])],
        member(epoch=NEW, assigned={T: {0: 3, 2: NEW}}),
    ),
    "a revoked partition may be assigned again, as of the new epoch": (
        REVOKING,
        goal({T: {0, 1}}, mine=((T, 1),)),
        [(T, [0])],
        member(epoch=NEW, assigned={T: {0: 3, 1: NEW}}),
    ),
    "a newer target revokes more partitions": (
        REVOKING,
        goal({}),
        [(T, [0])],
        member(UNREVOKED, assigned={}, pending_revocation={T: {0: 3}}),
    ),
    "partitions of an unsubscribed topic are revoked before a new target exists": (
        STABLE_01,
        goal({T: {0, 1}}, epoch=OLD, subscribed=(U,), changed=True),
        None,
        member(UNREVOKED, assigned={}, pending_revocation=HAS_01),
    ),
    "already revoked partitions of an unsubscribed topic are just removed": (
        STABLE_01,
        goal({T: {0, 1}}, epoch=OLD, subscribed=(U,), changed=True),
        [],
        member(assigned={}),
    ),
    "subscribing to another topic revokes nothing": (
        STABLE_01,
        goal({T: {0, 1}}, epoch=OLD, changed=True),
        None,
        STABLE_01,
    ),
    "partitions of an unsubscribed topic join a pending revocation": (
        member(UNREVOKED, assigned={T: {0: 3}, U: {0: 2}}, pending_revocation={T: {1: 4}}),
        goal({T: {0}}, subscribed=(U,), changed=True),
        [(T, [0, 1])],
        member(UNREVOKED, assigned={U: {0: 2}}, pending_revocation={T: {0: 3, 1: 4}}),
    ),
    "target partitions of an unsubscribed topic are ignored": (
        member(),
        goal({T: {0}, U: {0}}, subscribed=(U,)),
        [],
        member(epoch=NEW, assigned={U: {0: NEW}}),
    ),
}


@pytest.mark.parametrize(("before", "goal", "owned", "after"), CASES.values(), ids=CASES)
def test_reconcile_returns_the_next_member_state(
    before: ConsumerMember, goal: Goal, owned: Owned, after: ConsumerMember
) -> None:
    stepped = reconcile(before, goal, owned)
    assert stepped._replace(previous_member_epoch=0) == after._replace(previous_member_epoch=0)


def test_previous_member_epoch_is_the_epoch_before_the_step() -> None:
    stepped = reconcile(member(), goal({T: {0}}), [])
    assert (stepped.previous_member_epoch, stepped.member_epoch) == (OLD, NEW)
