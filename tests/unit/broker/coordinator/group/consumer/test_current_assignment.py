"""One heartbeat's step from what a member has to what it shall have."""

from typing import Any

import pytest

from sluice.broker.coordinator.group.consumer.current_assignment import Goal, Owned, reconcile
from sluice.broker.coordinator.group.consumer.member import ConsumerMember, MemberState

T, U = b"t" * 16, b"u" * 16
STABLE, UNREVOKED, UNRELEASED = MemberState
OLD, NEW = 5, 6  # epochs


def member(state: MemberState = STABLE, epoch: int = OLD, **fields: Any) -> ConsumerMember:
    return ConsumerMember("me", member_epoch=epoch, previous_member_epoch=epoch, state=state, **fields)


def goal(
    target: dict[bytes, set[int]],
    *,
    epoch: int = NEW,
    subscribed: tuple[bytes, ...] = (T, U),
    others: tuple[tuple[bytes, int], ...] = (),
    mine: tuple[tuple[bytes, int], ...] = (),
    changed: bool = False,
) -> Goal:
    owners = dict.fromkeys(others, "other") | dict.fromkeys(mine, "me")
    return Goal(epoch, target, subscribed, lambda topic, partition: owners.get((topic, partition)), changed)


HAS_01 = {T: {0: 3, 1: 4}}
CASES = [
    pytest.param(
        member(assigned=HAS_01), goal({T: {0, 1}}, epoch=OLD), None, member(assigned=HAS_01), id="all is as it shall be"
    ),
    pytest.param(
        member(),
        goal({T: {0, 1}}),
        [],
        member(epoch=NEW, assigned={T: {0: NEW, 1: NEW}}),
        id="what is free is taken at once",
    ),
    pytest.param(
        member(assigned=HAS_01),
        goal({T: {0, 1, 2}}, others=((T, 2),)),
        [],
        member(UNRELEASED, NEW, assigned=HAS_01),
        id="what is another's is waited for, in the new epoch",
    ),
    pytest.param(
        member(UNRELEASED, NEW, assigned=HAS_01),
        goal({T: {0, 1, 2}}),
        None,
        member(epoch=NEW, assigned={T: {0: 3, 1: 4, 2: NEW}}),
        id="what was waited for is taken when it is free",
    ),
    pytest.param(
        member(UNRELEASED, NEW, assigned=HAS_01),
        goal({T: {0, 1, 2, 3}}, others=((T, 3),)),
        None,
        member(UNRELEASED, NEW, assigned={T: {0: 3, 1: 4, 2: NEW}}),
        id="some of what was waited for is taken",
    ),
    pytest.param(
        member(assigned=HAS_01),
        goal({T: {0, 2}}),
        [(T, [0, 1])],
        member(UNREVOKED, OLD, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}}),
        id="what is not its own any more is to be given up first, in the old epoch",
    ),
    pytest.param(
        member(assigned=HAS_01),
        goal({T: {0}}),
        None,
        member(UNREVOKED, OLD, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}}),
        id="a member that does not say what it has may have all",
    ),
    pytest.param(
        member(assigned=HAS_01),
        goal({T: {0, 2}}),
        [(T, [0])],
        member(epoch=NEW, assigned={T: {0: 3, 2: NEW}}),
        id="what it has given up already needs no step of its own",
    ),
    pytest.param(
        member(UNREVOKED, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}}),
        goal({T: {0, 2}}),
        [(T, [1])],
        member(UNREVOKED, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}}),
        id="nothing happens while it has what it is to give up",
    ),
    pytest.param(
        member(UNREVOKED, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}}),
        goal({T: {0, 2}}),
        None,
        member(UNREVOKED, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}}),
        id="nothing happens while it does not say that it gave it up",
    ),
    pytest.param(
        member(UNREVOKED, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}}),
        goal({T: {0, 2}}),
        [(T, [0])],
        member(epoch=NEW, assigned={T: {0: 3, 2: NEW}}),
        id="once that is given up it goes on",
    ),
    pytest.param(
        member(UNREVOKED, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}}),
        goal({T: {0, 1}}, mine=((T, 1),)),
        [(T, [0])],
        member(epoch=NEW, assigned={T: {0: 3, 1: NEW}}),
        id="it may have back what it gave up, as of the new epoch",
    ),
    pytest.param(
        member(UNREVOKED, assigned={T: {0: 3}}, pending_revocation={T: {1: 4}}),
        goal({}),
        [(T, [0])],
        member(UNREVOKED, assigned={}, pending_revocation={T: {0: 3}}),
        id="a target that came meanwhile takes more",
    ),
    pytest.param(
        member(assigned=HAS_01),
        goal({T: {0, 1}}, epoch=OLD, subscribed=(U,), changed=True),
        None,
        member(UNREVOKED, assigned={}, pending_revocation=HAS_01),
        id="a topic that it does not want any more is to be given up before there is a new target",
    ),
    pytest.param(
        member(assigned=HAS_01),
        goal({T: {0, 1}}, epoch=OLD, subscribed=(U,), changed=True),
        [],
        member(assigned={}),
        id="such a topic that it has given up already is just not its own any more",
    ),
    pytest.param(
        member(assigned=HAS_01),
        goal({T: {0, 1}}, epoch=OLD, changed=True),
        None,
        member(assigned=HAS_01),
        id="wanting another topic as well takes nothing away",
    ),
    pytest.param(
        member(UNREVOKED, assigned={T: {0: 3}, U: {0: 2}}, pending_revocation={T: {1: 4}}),
        goal({T: {0}}, subscribed=(U,), changed=True),
        [(T, [0, 1])],
        member(UNREVOKED, assigned={U: {0: 2}}, pending_revocation={T: {0: 3, 1: 4}}),
        id="a topic that is not wanted any more joins what is to be given up already",
    ),
    pytest.param(
        member(),
        goal({T: {0}, U: {0}}, subscribed=(U,)),
        [],
        member(epoch=NEW, assigned={U: {0: NEW}}),
        id="of a topic that it does not want it gets nothing, whatever the target says",
    ),
]


@pytest.mark.parametrize(("before", "goal", "owned", "after"), CASES)
def test_a_heartbeat_takes_a_member_one_step(
    before: ConsumerMember, goal: Goal, owned: Owned, after: ConsumerMember
) -> None:
    stepped = reconcile(before, goal, owned)
    assert stepped._replace(previous_member_epoch=0) == after._replace(previous_member_epoch=0)


def test_the_previous_epoch_is_the_one_it_came_from() -> None:
    stepped = reconcile(member(), goal({T: {0}}), [])
    assert (stepped.previous_member_epoch, stepped.member_epoch) == (OLD, NEW)
