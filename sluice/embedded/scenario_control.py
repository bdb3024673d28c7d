"""A scenario that runs in the background of a test: `broker.start_scenario`."""

from os import PathLike, fspath
from typing import TYPE_CHECKING

from sluice.broker.server.cluster_server import ClusterServer

if TYPE_CHECKING:
    from sluice.broker.scenarios.model import Scenario
    from sluice.broker.scenarios.report import StepDone
    from sluice.broker.scenarios.run import Run


class LocalScenario:
    """One run of a scenario."""

    def __init__(self, run: "Run") -> None:
        self._run = run

    @property
    def done(self) -> bool:
        """Whether the run has ended or was stopped, and brokers, quotas and configs are restored."""
        return self._run.done

    @property
    def steps(self) -> "list[StepDone]":
        """The steps so far, each with its problem if it failed."""
        return list(self._run.steps)

    async def wait(self) -> "list[StepDone]":
        """Wait for the end of the run, and return its steps."""
        await self._run.wait()
        return self.steps

    def stop(self) -> None:
        """Stop the run early. Further calls do nothing."""
        self._run.stop()


def start_run(scenario: "Scenario | PathLike[str] | str", server: ClusterServer) -> LocalScenario:
    from sluice.broker.scenarios.run import Run  # few tests need it

    run = Run(load_scenario(scenario), server)
    run.start()
    return LocalScenario(run)


def load_scenario(scenario: "Scenario | PathLike[str] | str") -> "Scenario":
    """Return a scenario by its name in the catalogue or its file; a Scenario is returned unchanged."""
    from sluice.broker.scenarios.files import load
    from sluice.broker.scenarios.model import Scenario

    return scenario if isinstance(scenario, Scenario) else load(fspath(scenario))
