"""Elections by kind, in-sync replicas and live brokers."""

import pytest

from sluice.broker.controller.elections import Elected, Election, elect

PREFERRED, UNCLEAN, ONLINE = Election


ELECTIONS = {
    "live leader stays": (ONLINE, 1, (1, 2, 3), {1, 2, 3}, Elected(1, (1, 2, 3))),
    "live leader stays though not preferred": (ONLINE, 2, (1, 2, 3), {1, 2, 3}, Elected(2, (1, 2, 3))),
    "first in-sync replica is elected": (ONLINE, 1, (2, 3), {2, 3}, Elected(2, (2, 3))),
    "order of replicas, not of the ISR, decides": (ONLINE, 1, (3, 2), {2, 3}, Elected(2, (3, 2))),
    "replica out of sync is skipped": (ONLINE, 1, (3,), {2, 3}, Elected(3, (3,))),
    "no live in-sync replica: offline, ISR unchanged": (ONLINE, 1, (1,), {2, 3}, Elected(-1, (1,))),
    "unclean: first live replica, alone in the ISR": (UNCLEAN, 1, (1,), {2, 3}, Elected(2, (2,))),
    "unclean: live in-sync leader stays": (UNCLEAN, 1, (1,), {1, 2, 3}, Elected(1, (1,))),
    "unclean: no live replica": (UNCLEAN, 1, (1,), set(), Elected(-1, (1,))),
    "preferred: preferred leader is elected": (PREFERRED, 2, (1, 2, 3), {1, 2, 3}, Elected(1, (1, 2, 3))),
    "preferred: out of sync, current leader stays": (PREFERRED, 2, (2, 3), {1, 2, 3}, Elected(2, (2, 3))),
    "preferred: not live, current leader stays": (PREFERRED, 3, (1, 2, 3), {2, 3}, Elected(3, (1, 2, 3))),
    "preferred: in-sync replica replaces a dead leader": (PREFERRED, 3, (2,), {1, 2}, Elected(2, (2,))),
}


@pytest.mark.parametrize(("election", "leader", "isr", "live", "elected"), ELECTIONS.values(), ids=ELECTIONS)
def test_elected_leader_and_isr(
    election: Election, leader: int, isr: tuple[int, ...], live: set[int], elected: Elected
) -> None:
    assert elect(election, leader, (1, 2, 3), isr, live.__contains__) == elected
