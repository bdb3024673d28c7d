"""The runs of scenarios on a cluster, one after another: two at once would undo each other's steps."""

from itertools import count

from sluice.broker.controller.errors import ClusterError, UnknownResourceError
from sluice.broker.server.cluster_server import ClusterServer

from .model import Scenario
from .run import Run

# So many are remembered that are over.
_MOST = 100


class Runs:
    """Those that were started through the admin port."""

    def __init__(self, server: ClusterServer) -> None:
        self._server = server
        self._numbers = count(1)
        self._runs: dict[str, Run] = {}

    def start(self, scenario: Scenario, *, keep: bool) -> Run:
        """Begins a run. Raises ScenarioError, and ClusterError while another one is under way."""
        under_way = next((run for run in self._runs.values() if not run.done), None)
        if under_way is not None:
            raise ClusterError(f"{under_way.run_id} ({under_way.scenario.name}) is under way; stop it first")
        run = Run(scenario, self._server, run_id=f"run-{next(self._numbers)}", keep=keep)
        run.start()
        self._runs[run.run_id] = run
        if len(self._runs) > _MOST:
            del self._runs[next(iter(self._runs))]
        return run

    def get(self, run_id: str) -> Run:
        """A run by its id. Raises UnknownResourceError."""
        run = self._runs.get(run_id)
        if run is None:
            there = f"those there are: {', '.join(self._runs)}" if self._runs else "there was none yet"
            raise UnknownResourceError(f"there is no run {run_id}; {there}")
        return run

    def all(self) -> list[Run]:
        """The newest last."""
        return list(self._runs.values())
