"""Actions on brokers: down, or isolated."""

from functools import partial
from typing import Annotated

import msgspec

from sluice.broker.controller.controller import ISOLATED, STOPPED, BrokerState
from sluice.broker.faults.broker_states import DesiredState
from sluice.broker.faults.fault import Fault, StateAction, check_several
from sluice.broker.faults.target import FaultTarget, TargetInfo
from sluice.broker.faults.undo import Undo, undo_all


class BrokerDown(StateAction, frozen=True, tag="broker-down"):
    """Stops brokers, and restarts them when the rule ends."""

    controlled: Annotated[
        bool, msgspec.Meta(description="controlled shutdown: leadership moves first; otherwise as if killed")
    ] = False

    def begin(self, fault: Fault, target: FaultTarget) -> Undo:
        return _desire(fault, target, STOPPED, controlled=self.controlled)


class Isolate(StateAction, frozen=True, tag="isolate"):
    """Isolates brokers from the controller and the other brokers, not from clients; in a proxy, from its clients."""

    def check_target(self, fault: Fault, target: TargetInfo) -> None:
        if not target.is_proxy:
            check_several(target)

    def begin(self, fault: Fault, target: FaultTarget) -> Undo:
        return _desire(fault, target, ISOLATED)


def _desire(fault: Fault, target: FaultTarget, state: BrokerState, *, controlled: bool = False) -> Undo:
    states, nodes = fault.owner.broker_states, fault.nodes(target)
    for node_id in nodes:
        states.check(node_id, state)
    affected = {*nodes}

    def undone(node_id: int) -> None:
        affected.discard(node_id)
        if not affected:
            fault.end()

    return undo_all(
        states.desire(node_id, DesiredState(state, fault.disable, partial(undone, node_id), controlled=controlled))
        for node_id in nodes
    )
