"""What there is to tell of a run, as data: what the admin port answers, and `sluice run` prints."""

from msgspec import Struct


class StepDone(Struct, frozen=True):
    """What happened, or could not.

    at_ms: since the beginning
    step: its path in the file
    what: in words
    problem: why it could not be done, else ""
    """

    at_ms: float
    step: str
    what: str
    problem: str = ""


class RuleReport(Struct, frozen=True):
    """A fault rule that a run has added.

    id: its own, or the one it was given
    action: the kind of what it does
    matched: how many requests, connections or brokers it was about
    hits: how many of these it has hit
    problem: what went wrong with it, which has disabled it; else ""
    """

    id: str
    action: str
    matched: int
    hits: int
    problem: str


class RunReport(Struct, frozen=True):
    """A run, as it is now.

    id: which it is
    scenario: its name
    description: what the scenario shows
    state: running, ended in its time, or stopped before
    done: whether all is in order again, brokers that were to start among it
    elapsed_ms: how long it has run
    duration_ms: how long it takes
    steps: what was done
    rules: the fault rules among it
    differences: of the brokers' properties from those that the scenario has, a line for each
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
        """What could not be done."""
        return [step for step in self.steps if step.problem]
