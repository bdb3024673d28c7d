"""A scenario that runs while a test does: `broker.start_scenario`."""

from os import PathLike, fspath
from typing import TYPE_CHECKING

from sluice.broker.server.cluster_server import ClusterServer

if TYPE_CHECKING:
    from sluice.broker.scenarios.model import Scenario
    from sluice.broker.scenarios.report import StepDone
    from sluice.broker.scenarios.run import Run


class LocalScenario:
    """One run of a scenario, until it ends or is stopped."""

    def __init__(self, run: "Run") -> None:
        self._run = run

    @property
    def done(self) -> bool:
        """Whether it has come to its end, or was stopped, and brokers, quotas and configs are again as before."""
        return self._run.done

    @property
    def steps(self) -> "list[StepDone]":
        """What was done so far, and for what could not be the reason."""
        return list(self._run.steps)

    async def wait(self) -> "list[StepDone]":
        """The same, of all of it, when it is done."""
        await self._run.wait()
        return self.steps

    def stop(self) -> None:
        """Ends it before its time; once is enough."""
        self._run.stop()


def start_run(scenario: "Scenario | PathLike[str] | str", server: ClusterServer) -> LocalScenario:
    """Start a scenario, for Broker.start_scenario."""
    from sluice.broker.scenarios.run import Run  # few tests run a scenario

    run = Run(load_scenario(scenario), server)
    run.start()
    return LocalScenario(run)


def load_scenario(scenario: "Scenario | PathLike[str] | str") -> "Scenario":
    """Return a scenario from its name in the catalogue or its file, or as it is."""
    from sluice.broker.scenarios.files import load
    from sluice.broker.scenarios.model import Scenario

    return scenario if isinstance(scenario, Scenario) else load(fspath(scenario))
