"""Actions on the metadata of brokers."""

from math import inf
from typing import TYPE_CHECKING, Annotated

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
    """Freezes brokers' metadata of leaders, brokers and new topics."""

    def begin(self, fault: "ActiveRule", target: "FaultTarget") -> Undo:
        return _delay_updates(fault, target, inf)


class MetadataLag(StateAction, frozen=True, tag="metadata-lag"):
    """Delays brokers' metadata of leaders, brokers and new topics."""

    lag: Annotated[Duration, msgspec.Meta(description="delay of each update")]

    def check(self, match: Match) -> None:
        if parse_ms(self.lag, "action.lag") <= 0:
            raise RuleProblem("action.lag", f"expected more than 0, got {self.lag}")

    def begin(self, fault: "ActiveRule", target: "FaultTarget") -> Undo:
        return _delay_updates(fault, target, parse_ms(self.lag, "action.lag"))


def _delay_updates(fault: "ActiveRule", target: "FaultTarget", lag_ms: float) -> Undo:
    publisher = target.cluster.controller.publisher
    return undo_all(publisher.delay_updates(node_id, lag_ms) for node_id in fault.nodes(target))
