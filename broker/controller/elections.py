"""Leader elections: the part of Kafka's PartitionChangeBuilder that elects.

    election    eligible                            elected
    ONLINE      live replicas in the ISR            the current leader if eligible, else the first eligible replica
    PREFERRED   the same                            the first replica if eligible, else as ONLINE
    UNCLEAN     the same, else all live replicas    as ONLINE; the first live replica if no ISR member lives

Without an eligible replica, the partition is offline. Different on purpose: there are no eligible leader replicas,
which Kafka may elect in addition to the ISR (KIP-966).
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from sluice.broker.metadata.topic import NO_LEADER


class Election(Enum):
    """The kinds of elections in requests (KIP-460), and ONLINE, which only the controller starts."""

    PREFERRED = 0
    UNCLEAN = 1
    ONLINE = 2


class Elected(NamedTuple):
    """After an unclean election, the ISR is the leader alone."""

    leader: int
    isr: tuple[int, ...]


def elect(
    election: Election, leader: int, replicas: Sequence[int], isr: tuple[int, ...], is_live: Callable[[int], bool]
) -> Elected:
    may_lead = [node_id for node_id in replicas if node_id in isr and is_live(node_id)]
    if may_lead:
        preferred = may_lead[0] == replicas[0] and election is Election.PREFERRED
        return Elected(may_lead[0] if preferred or leader not in may_lead else leader, isr)
    if election is Election.UNCLEAN:
        live = next(filter(is_live, replicas), NO_LEADER)
        if live != NO_LEADER:
            return Elected(live, (live,))
    return Elected(NO_LEADER, isr)
