"""Actions on the metadata of brokers."""

from math import inf
from typing import Annotated, ClassVar

import msgspec

from sluice.broker.faults.fault import Fault, StateAction
from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.matching.values import Duration, parse_ms, parse_positive_ms
from sluice.broker.faults.target import FaultTarget
from sluice.broker.faults.undo import Undo, undo_all

_REFUSAL = "the upstream brokers have the metadata. Use wrong-leader, unknown-leader or stale-leader-hint"


class StaleMetadata(StateAction, frozen=True, tag="stale-metadata"):
    """Freezes brokers' metadata of leaders, brokers and new topics."""

    PROXY_REFUSAL: ClassVar[str] = _REFUSAL

    def begin(self, fault: Fault, target: FaultTarget) -> Undo:
        return _delay_updates(fault, target, inf)


class MetadataLag(StateAction, frozen=True, tag="metadata-lag"):
    """Delays brokers' metadata of leaders, brokers and new topics."""

    PROXY_REFUSAL: ClassVar[str] = _REFUSAL

    lag: Annotated[Duration, msgspec.Meta(description="delay of each update")]

    def check(self, match: Match) -> None:
        parse_positive_ms(self.lag, "action.lag")

    def begin(self, fault: Fault, target: FaultTarget) -> Undo:
        return _delay_updates(fault, target, parse_ms(self.lag, "action.lag"))


def _delay_updates(fault: Fault, target: FaultTarget, lag_ms: float) -> Undo:
    publisher = target.cluster.controller.publisher
    return undo_all(publisher.delay_updates(node_id, lag_ms) for node_id in fault.nodes(target))
