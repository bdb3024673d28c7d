"""The states that rules require of brokers: running, isolated or stopped. Several rules may affect one broker.

    desired by any rule     the broker is
    stopped                 stopped
    isolated                isolated
    neither                 running

If other means (admin port, scenario) change a broker, no rule in force changes it again. A rule cannot begin with a
broker that other means stopped or isolated.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from sluice.broker.controller.controller import ISOLATED, RUNNING, STOPPED, BrokerState
from sluice.errors import SluiceError

from .target import FaultTarget
from .undo import Undo

# The event that leads to a state.
_EVENTS = {ISOLATED: "isolate", STOPPED: "stop"}
_WORST_FIRST = (STOPPED, ISOLATED)
Failed = Callable[[SluiceError], None]


class DesiredState(NamedTuple):
    """What a rule requires of a broker."""

    state: BrokerState
    failed: Failed  # gets the reason if the broker cannot be restarted
    undone: Callable[[], None]  # called if other means change the broker
    controlled: bool = False  # whether to stop it by a controlled shutdown


class DesiredBrokerStates:
    def __init__(self, target: FaultTarget) -> None:
        self._target = target
        self._desired: dict[int, list[DesiredState]] = {}  # by node id
        self._left: dict[int, BrokerState] = {}  # the states that rules set last
        self._starting: set[int] = set()  # brokers that are starting since the last rule ended

    def check(self, node_id: int, state: BrokerState) -> None:
        if not self._desired.get(node_id) and node_id not in self._starting:
            self._target.check_transition(node_id, _EVENTS[state])

    def desire(self, node_id: int, desired: DesiredState) -> Undo:
        """Bring a broker to a state until the returned function is called; raise ClusterError as `check` does."""
        self.check(node_id, desired.state)
        self._desired.setdefault(node_id, []).append(desired)
        self._bring_about(node_id, desired)
        return partial(self._withdraw, node_id, desired)

    def changed(self, node_id: int) -> None:
        """Forget what rules require of a broker if its new state is not the one that they set."""
        if node_id in self._starting or self._target.cluster.controller.state(node_id) is self._left.get(node_id):
            return
        for desired in self._desired.pop(node_id, ()):
            desired.undone()

    def _withdraw(self, node_id: int, desired: DesiredState) -> None:
        if desired in self._desired.get(node_id, ()):
            self._desired[node_id].remove(desired)
            self._bring_about(node_id, desired)

    def _bring_about(self, node_id: int, because: DesiredState) -> None:
        wanted, state = self._combined(node_id), self._target.cluster.controller.state(node_id)
        self._left[node_id] = wanted
        if wanted is state or self._target.is_stopping:
            return
        if state is STOPPED:
            self._left[node_id] = STOPPED  # until it has started
            self._starting.add(node_id)
            self._target.start_broker_soon(node_id, partial(self._started, node_id, because))
        elif wanted is STOPPED:
            self._target.stop_broker(node_id, controlled=because.controlled)
        elif wanted is ISOLATED:
            self._target.isolate_broker(node_id)
        else:
            self._target.rejoin_broker(node_id)

    def _started(self, node_id: int, because: DesiredState, problem: SluiceError | None) -> None:
        self._starting.discard(node_id)
        if self._target.cluster.controller.state(node_id) is RUNNING:
            self._bring_about(node_id, because)  # rules may desire another state by now
        elif problem is not None:
            because.failed(problem)

    def _combined(self, node_id: int) -> BrokerState:
        desired = {each.state for each in self._desired.get(node_id, ())}
        return next((state for state in _WORST_FIRST if state in desired), RUNNING)
