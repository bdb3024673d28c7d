"""Steps that change the state of brokers; the controller defines the possible transitions."""

from typing import NamedTuple

from sluice.broker.controller.controller import TRANSITIONS, BrokerState

from .action import Action, ExpectedState, ScenarioContext, StepProblem


class _Kind(NamedTuple):
    event: str  # name of the controller's event
    description: str
    undone_by: str | None


KINDS = {
    "stop": _Kind("stop", "broker {} stops", "start"),
    "kill": _Kind("stop", "broker {} is killed", "start"),
    "start": _Kind("start", "broker {} starts", None),
    "isolate": _Kind("isolate", "broker {} is isolated", "rejoin"),
    "rejoin": _Kind("rejoin", "broker {} rejoins", None),
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
        _act(context, self.kind, self.broker)

    def inverse(self) -> "BrokerStep | None":
        undone_by = KINDS[self.kind].undone_by
        return None if undone_by is None else BrokerStep(undone_by, self.broker)


def _act(context: ScenarioContext, kind: str, broker: int) -> None:
    server = context.server
    match kind:
        case "stop" | "kill":
            server.stop_broker(broker, controlled=kind == "stop")
        case "start":
            context.start_broker(broker)
        case "isolate":
            server.isolate_broker(broker)
        case "rejoin":
            server.rejoin_broker(broker)


def _bring_back(context: ScenarioContext, broker: int) -> None:
    kind = _BACK.get(context.server.cluster.controller.state(broker))
    if kind is not None:
        _act(context, kind, broker)
