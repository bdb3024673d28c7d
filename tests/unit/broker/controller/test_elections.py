"""Who is elected: by the kind of election, who is in sync and who lives."""

import pytest

from sluice.broker.controller.elections import Elected, Election, elect

PREFERRED, UNCLEAN, ONLINE = Election


@pytest.mark.parametrize(
    ("election", "leader", "isr", "live", "elected"),
    [
        pytest.param(ONLINE, 1, (1, 2, 3), {1, 2, 3}, Elected(1, (1, 2, 3)), id="a leader that lives stays"),
        pytest.param(ONLINE, 2, (1, 2, 3), {1, 2, 3}, Elected(2, (1, 2, 3)), id="even if it is not the preferred one"),
        pytest.param(ONLINE, 1, (2, 3), {2, 3}, Elected(2, (2, 3)), id="else the first of the replicas in sync"),
        pytest.param(ONLINE, 1, (3, 2), {2, 3}, Elected(2, (3, 2)), id="by the order of replicas, not of the ISR"),
        pytest.param(ONLINE, 1, (3,), {2, 3}, Elected(3, (3,)), id="one that is not in sync is passed over"),
        pytest.param(ONLINE, 1, (1,), {2, 3}, Elected(-1, (1,)), id="none in sync lives: offline, the ISR stays"),
        pytest.param(UNCLEAN, 1, (1,), {2, 3}, Elected(2, (2,)), id="unclean: the first that lives, alone in sync"),
        pytest.param(UNCLEAN, 1, (1,), {1, 2, 3}, Elected(1, (1,)), id="unclean only where it must be"),
        pytest.param(UNCLEAN, 1, (1,), set(), Elected(-1, (1,)), id="unclean, and nobody lives"),
        pytest.param(PREFERRED, 2, (1, 2, 3), {1, 2, 3}, Elected(1, (1, 2, 3)), id="the preferred leader comes back"),
        pytest.param(PREFERRED, 2, (2, 3), {1, 2, 3}, Elected(2, (2, 3)), id="not while it is not in sync"),
        pytest.param(PREFERRED, 3, (1, 2, 3), {2, 3}, Elected(3, (1, 2, 3)), id="nor while it does not live"),
        pytest.param(PREFERRED, 3, (2,), {1, 2}, Elected(2, (2,)), id="another, if the leader cannot lead on"),
    ],
)
def test_an_election(election: Election, leader: int, isr: tuple[int, ...], live: set[int], elected: Elected) -> None:
    assert elect(election, leader, (1, 2, 3), isr, live.__contains__) == elected
