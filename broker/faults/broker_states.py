"""What rules want brokers to be: running, isolated, or stopped. Several rules may want something of one broker.

    wanted by any rule      the broker is
    stopped                 stopped, whatever others want
    isolated                isolated
    neither                 running

Each rule that begins or ends brings a broker to where the rules that are left want it. Who changes a broker by hand
meanwhile is not overruled: a rule that ends leaves it as it finds it, if that is not as rules have left it. And a rule
does not begin with a broker that somebody has stopped or isolated by hand.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sluice.broker.controller.controller import ISOLATED, RUNNING, STOPPED, BrokerState
from sluice.errors import SluiceError

from .undo import Undo

if TYPE_CHECKING:
    from .target import FaultTarget

# What happens to a broker that is to be isolated, or stopped.
_HAPPENINGS = {ISOLATED: "isolate", STOPPED: "stop"}
_WORST_FIRST = (STOPPED, ISOLATED)
Failed = Callable[[SluiceError], None]


class _DesiredState:
    """What one rule wants."""

    def __init__(self, state: BrokerState, failed: Failed, *, controlled: bool) -> None:
        self.state = state
        self.failed = failed
        self.controlled = controlled


class DesiredBrokerStates:
    """Of the brokers of one cluster."""

    def __init__(self, server: "FaultTarget") -> None:
        self._server = server
        self._wants: dict[int, list[_DesiredState]] = {}  # by node id
        self._left: dict[int, BrokerState] = {}  # as rules have left it
        self._starting: set[int] = set()  # those that rules have let go of, and that have yet to start

    def check(self, node_id: int, state: BrokerState) -> None:
        """Raises ClusterError where that cannot be wanted of a broker, as it is."""
        if not self._wants.get(node_id) and node_id not in self._starting:
            self._server.check_may(node_id, _HAPPENINGS[state])

    def want(self, node_id: int, state: BrokerState, failed: Failed, *, controlled: bool = False) -> Undo:
        """A rule wants a broker to be in a state until what is returned is called; `controlled`: it stops in order.

        `failed` is told why a broker could not be started again. Raises ClusterError as `check` does.
        """
        self.check(node_id, state)
        want = _DesiredState(state, failed, controlled=controlled)
        self._wants.setdefault(node_id, []).append(want)
        self._bring_about(node_id, want)
        return partial(self._give_up, node_id, want)

    def _give_up(self, node_id: int, want: _DesiredState) -> None:
        self._wants[node_id].remove(want)
        if self._server.cluster.controller.state(node_id) is self._left.get(node_id):
            self._bring_about(node_id, want)

    def _bring_about(self, node_id: int, because: _DesiredState) -> None:
        """Makes of a broker what rules want it to be: `because` has just come or gone."""
        wanted, state = self._wanted(node_id), self._server.cluster.controller.state(node_id)
        self._left[node_id] = wanted
        if wanted is state or self._server.is_stopping:
            return
        if state is STOPPED:
            self._left[node_id] = STOPPED  # until it has started
            self._starting.add(node_id)
            self._server.start_broker_soon(node_id, partial(self._started, node_id, because))
        elif wanted is STOPPED:
            self._server.stop_broker(node_id, controlled=because.controlled)
        elif wanted is ISOLATED:
            self._server.isolate_broker(node_id)
        else:
            self._server.rejoin_broker(node_id)

    def _started(self, node_id: int, because: _DesiredState, problem: SluiceError | None) -> None:
        self._starting.discard(node_id)
        if self._server.cluster.controller.state(node_id) is RUNNING:
            self._bring_about(node_id, because)  # rules may want something else of it by now
        elif problem is not None:
            because.failed(problem)

    def _wanted(self, node_id: int) -> BrokerState:
        wanted = {want.state for want in self._wants[node_id]}
        return next((state for state in _WORST_FIRST if state in wanted), RUNNING)
