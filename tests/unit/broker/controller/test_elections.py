"""Elections by kind, in-sync replicas and live brokers."""

import pytest

from sluice.broker.controller.elections import Elected, Election, elect

PREFERRED, UNCLEAN, ONLINE = Election


@pytest.mark.parametrize(
    ("election", "leader", "isr", "live", "elected"),
    [
        pytest.param(ONLINE, 1, (1, 2, 3), {1, 2, 3}, Elected(1, (1, 2, 3)), id="live leader stays"),
        pytest.param(
            ONLINE, 2, (1, 2, 3), {1, 2, 3}, Elected(2, (1, 2, 3)), id="live leader stays though not preferred"
        ),
        pytest.param(ONLINE, 1, (2, 3), {2, 3}, Elected(2, (2, 3)), id="first in-sync replica is elected"),
        pytest.param(ONLINE, 1, (3, 2), {2, 3}, Elected(2, (3, 2)), id="order of replicas, not of the ISR, decides"),
        pytest.param(ONLINE, 1, (3,), {2, 3}, Elected(3, (3,)), id="replica out of sync is skipped"),
        pytest.param(ONLINE, 1, (1,), {2, 3}, Elected(-1, (1,)), id="no live in-sync replica: offline, ISR unchanged"),
        pytest.param(UNCLEAN, 1, (1,), {2, 3}, Elected(2, (2,)), id="unclean: first live replica, alone in the ISR"),
        pytest.param(UNCLEAN, 1, (1,), {1, 2, 3}, Elected(1, (1,)), id="unclean: live in-sync leader stays"),
        pytest.param(UNCLEAN, 1, (1,), set(), Elected(-1, (1,)), id="unclean: no live replica"),
        pytest.param(
            PREFERRED, 2, (1, 2, 3), {1, 2, 3}, Elected(1, (1, 2, 3)), id="preferred: preferred leader is elected"
        ),
        pytest.param(
            PREFERRED, 2, (2, 3), {1, 2, 3}, Elected(2, (2, 3)), id="preferred: out of sync, current leader stays"
        ),
        pytest.param(
            PREFERRED, 3, (1, 2, 3), {2, 3}, Elected(3, (1, 2, 3)), id="preferred: not live, current leader stays"
        ),
        pytest.param(
            PREFERRED, 3, (2,), {1, 2}, Elected(2, (2,)), id="preferred: in-sync replica replaces a dead leader"
        ),
    ],
)
def test_elected_leader_and_isr(
    election: Election, leader: int, isr: tuple[int, ...], live: set[int], elected: Elected
) -> None:
    assert elect(election, leader, (1, 2, 3), isr, live.__contains__) == elected
