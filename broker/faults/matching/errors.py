"""Problems of rules."""


class RuleProblem(ValueError):  # noqa: N818  (internal; becomes a FaultError)
    """A rule that cannot work, with the path inside the rule: `action.code`."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem
