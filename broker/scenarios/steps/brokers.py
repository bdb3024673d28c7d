"""Steps that change the state of brokers; the controller defines the possible transitions."""

from collections.abc import Callable
from typing import NamedTuple

from sluice.broker.controller.controller import TRANSITIONS, BrokerState

from .action import Action, ExpectedState, ScenarioContext, StepProblem


class _Kind(NamedTuple):
    event: str  # name of the controller's event
    description: str
    undone_by: str | None
    act: Callable[[ScenarioContext, int], None]


def _stop(*, controlled: bool) -> Callable[[ScenarioContext, int], None]:
    return lambda context, broker: context.server.stop_broker(broker, controlled=controlled)


KINDS = {
    "stop": _Kind("stop", "broker {} stops", "start", _stop(controlled=True)),
    "kill": _Kind("stop", "broker {} is killed", "start", _stop(controlled=False)),
    "start": _Kind("start", "broker {} starts", None, ScenarioContext.start_broker),
    "isolate": _Kind("isolate", "broker {} is isolated", "rejoin", lambda context, b: context.server.isolate_broker(b)),
    "rejoin": _Kind("rejoin", "broker {} rejoins", None, lambda context, broker: context.server.rejoin_broker(broker)),
}
# The steps that restore a running broker.
_BACK = {BrokerState.STOPPED: "start", BrokerState.ISOLATED: "rejoin"}


class BrokerStep(Action):
    def __init__(self, kind: str, broker: int) -> None:
        super().__init__(KINDS[kind].description.format(broker))
        self.broker = broker
        self.kind = kind

    def check(self, expected: ExpectedState) -> None:
        state = expected.broker(self.broker)
        after = TRANSITIONS[KINDS[self.kind].event].get(state)
        if after is None:
            raise StepProblem(f"broker {self.broker} is {state.value} at this time")
        expected.brokers[self.broker] = after

    def do(self, context: ScenarioContext) -> None:
        context.restore_at_end(f"broker {self.broker}", lambda: _bring_back(context, self.broker))
        KINDS[self.kind].act(context, self.broker)

    def inverse(self) -> "BrokerStep | None":
        undone_by = KINDS[self.kind].undone_by
        return None if undone_by is None else BrokerStep(undone_by, self.broker)


def _bring_back(context: ScenarioContext, broker: int) -> None:
    kind = _BACK.get(context.server.cluster.controller.state(broker))
    if kind is not None:
        KINDS[kind].act(context, broker)
