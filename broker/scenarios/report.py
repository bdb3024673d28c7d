"""The report of a run as data, returned by the admin port and printed by `sluice run`."""

from msgspec import Struct


class StepDone(Struct, frozen=True):
    """An executed step.

    at_ms: time since the start
    step: path of the step in the file
    what: description of the step
    problem: why it failed; "" if it succeeded
    """

    at_ms: float
    step: str
    what: str
    problem: str = ""


class RuleReport(Struct, frozen=True):
    """A fault rule that a run added.

    id: given or generated id
    action: kind of its action
    matched: number of matching requests, connections or brokers
    hits: number of matches that it hit
    problem: error that disabled it; "" if none
    """

    id: str
    action: str
    matched: int
    hits: int
    problem: str


class RunReport(Struct, frozen=True):
    """The current state of a run.

    id: id of the run
    scenario: name of the scenario
    description: purpose of the scenario
    state: running, ended on time, or stopped early
    done: whether the run is over and the cluster restored, including broker starts
    elapsed_ms: time since the start
    duration_ms: length of the scenario
    steps: executed steps
    rules: fault rules that it added
    differences: broker properties that differ from the scenario's, one line each
    """

    id: str
    scenario: str
    description: str
    state: str
    done: bool
    elapsed_ms: float
    duration_ms: float
    steps: list[StepDone]
    rules: list[RuleReport]
    differences: list[str]

    @property
    def problems(self) -> list[StepDone]:
        return [step for step in self.steps if step.problem]
