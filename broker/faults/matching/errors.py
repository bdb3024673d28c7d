"""What is wrong with a rule, for a person: where in the rule, what, and what is accepted."""

from sluice.errors import ConfigError


class FaultError(ConfigError):
    """A rule that cannot work. Its text begins with the path: `faults[0].action.code: ...`."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class RuleProblem(ValueError):  # noqa: N818  (what it is; whoever adds a rule is given a FaultError)
    """The same while only the path inside the rule is known: `action.code`."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem
