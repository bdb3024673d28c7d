"""Who leads a partition next: Kafka's PartitionChangeBuilder, as far as it elects.

    election    may lead                            is chosen
    ONLINE      a live replica of the ISR           the leader as it is, if it may; else the first replica that may
    PREFERRED   the same                            the first replica, if it may; else as ONLINE
    UNCLEAN     the same, else any live replica     as ONLINE; the first live one, if none of the ISR lives

Without one that may lead, the partition is offline. Different on purpose: there are no eligible leader replicas
(KIP-966), which Kafka counts to the ISR's members once too few are in sync.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

from sluice.broker.metadata.topic import NO_LEADER


class Election(Enum):
    """The kinds of elections (KIP-460), and the one that the controller holds by itself."""

    PREFERRED = 0
    UNCLEAN = 1
    ONLINE = 2


class Elected(NamedTuple):
    """Who leads, and who is in sync with it: after an unclean election nobody else."""

    leader: int
    isr: tuple[int, ...]


def elect(
    election: Election, leader: int, replicas: Sequence[int], isr: tuple[int, ...], is_live: Callable[[int], bool]
) -> Elected:
    """The leader of a partition with these replicas, of which `leader` led until now."""
    may_lead = [node_id for node_id in replicas if node_id in isr and is_live(node_id)]
    if may_lead:
        preferred = may_lead[0] == replicas[0] and election is Election.PREFERRED
        return Elected(may_lead[0] if preferred or leader not in may_lead else leader, isr)
    if election is Election.UNCLEAN:
        live = next(filter(is_live, replicas), NO_LEADER)
        if live != NO_LEADER:
            return Elected(live, (live,))
    return Elected(NO_LEADER, isr)
