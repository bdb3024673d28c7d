"""Actions on brokers: down, and cut off."""

from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from sluice.broker.controller.controller import ISOLATED, STOPPED, BrokerState
from sluice.broker.faults.matching.errors import RuleProblem
from sluice.broker.faults.undo import Undo, undo_all
from sluice.config.broker_config import Config

from .action import StateAction, node_ids_of

if TYPE_CHECKING:
    from sluice.broker.faults.interfaces import ActiveRule
    from sluice.broker.faults.target import FaultTarget


class BrokerDown(StateAction, frozen=True, tag="broker-down"):
    """Stops brokers; they are started again, where they were, when the rule ends."""

    SUMMARY: ClassVar[str] = "Stops brokers, and starts them again when the rule ends."

    controlled: Annotated[
        bool, msgspec.Meta(description="they give up what they lead first; else they are gone as if killed")
    ] = False

    def begin(self, fault: "ActiveRule", target: "FaultTarget") -> Undo:
        return _desire(fault, target, STOPPED, controlled=self.controlled)


class Isolate(StateAction, frozen=True, tag="isolate"):
    """Clients reach the brokers; the controller and the other brokers do not."""

    SUMMARY: ClassVar[str] = "Cuts brokers off from the controller and the other brokers; clients still reach them."

    def check_cluster(self, fault: "ActiveRule", config: Config) -> None:
        if len(node_ids_of(config)) == 1:
            raise RuleProblem("action", "a cluster of one broker has no others that it could be cut off from")

    def begin(self, fault: "ActiveRule", target: "FaultTarget") -> Undo:
        return _desire(fault, target, ISOLATED)


def _desire(fault: "ActiveRule", target: "FaultTarget", state: BrokerState, *, controlled: bool = False) -> Undo:
    states, nodes = fault.broker_states, fault.nodes(target)
    for node_id in nodes:
        states.check(node_id, state)
    return undo_all(states.desire(node_id, state, fault.disable, controlled=controlled) for node_id in nodes)
