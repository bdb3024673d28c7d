"""Errors in rules, with their path in the rule."""

from sluice.errors import ConfigError


class FaultError(ConfigError):
    """A rule that cannot work. The message begins with the path: `faults[0].action.code: ...`."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


class RuleProblem(ValueError):  # noqa: N818  (internal; becomes a FaultError)
    """The same with a path inside the rule only: `action.code`."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem
