"""Actions on what brokers know of the cluster, and so tell of it."""

from math import inf
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from sluice.broker.faults.matching.durations import Duration, parse_ms
from sluice.broker.faults.matching.errors import RuleProblem
from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.undo import Undo, undo_all

from .action import StateAction

if TYPE_CHECKING:
    from sluice.broker.faults.interfaces import ActiveRule
    from sluice.broker.faults.target import FaultTarget


class StaleMetadata(StateAction, frozen=True, tag="stale-metadata"):
    """Brokers tell of topics, leaders and brokers what was so when the rule began."""

    SUMMARY: ClassVar[str] = "Freezes what brokers know, and tell, of leaders, brokers and new topics."

    def begin(self, fault: "ActiveRule", target: "FaultTarget") -> Undo:
        return _hold_back(fault, target, inf)


class MetadataLag(StateAction, frozen=True, tag="metadata-lag"):
    """Brokers learn later than others who leads, who lives, and which topics are new."""

    SUMMARY: ClassVar[str] = "Has brokers learn late of leaders, brokers and new topics."

    lag: Annotated[Duration, msgspec.Meta(description="how much later")]

    def check(self, match: Match) -> None:
        if parse_ms(self.lag, "action.lag") <= 0:
            raise RuleProblem("action.lag", f"{self.lag}: must be longer than 0")

    def begin(self, fault: "ActiveRule", target: "FaultTarget") -> Undo:
        return _hold_back(fault, target, parse_ms(self.lag, "action.lag"))


def _hold_back(fault: "ActiveRule", target: "FaultTarget", lag_ms: float) -> Undo:
    publisher = target.cluster.controller.publisher
    return undo_all(publisher.delay_updates(node_id, lag_ms) for node_id in fault.nodes(target))
